// The exercise uneven_batches, beside what the chapter's NaiveDdp does and beside one rank that
// learns from the samples of all.
#include "exercises/11_data_parallel/uneven_batches.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "03_network/models.hpp"
#include "10_nodes/make_communicator.hpp"
#include "exercises/support/junk.hpp"
#include "exercises/support/ranks.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr std::size_t device_memory = 4 << 20;
constexpr int inputs = 5, classes = 3;

std::string to_string(const std::vector<int>& samples) {
    std::string text;
    for (std::size_t r = 0; r < samples.size(); r++)
        text += (r == 0 ? "" : ", ") + std::to_string(samples[r]);
    return text;
}

// Runs `work` on as many ranks as there are `samples`; `hint` is for a rank that waits for ever.
void on_uneven_ranks(const std::vector<int>& samples, const std::string& hint,
                     const std::function<void(Rank&, Communicator&, Device&)>& work) {
    try {
        on_ranks(static_cast<int>(samples.size()), [&](Rank& rank) {
            auto& device = make_run_scoped<Device>(rank, device_memory);
            work(rank, *make_communicator("native", rank, 1 << 20), device);
        });
    } catch (const RunFailed& failure) {
        throw std::runtime_error("Ranks with " + to_string(samples) +
                                 " samples: " + failure.what() + ".\n" + hint);
    }
}

// ---- What a sample's weight is

// One parameter, with an element for each sample of all ranks.
class Weights : public Module {
  public:
    Weights(Device& device, int samples)
        : Module("weights"),
          parameter_(std::make_shared<Parameter>(
              "weights",
              Tensor(device, {samples}, std::vector<float>(static_cast<std::size_t>(samples))))) {}
    Variable forward(Variable input) override { return input; }
    Parameters parameters() const override { return {parameter_}; }
    Parameter& parameter() { return *parameter_; }

  private:
    std::shared_ptr<Parameter> parameter_;
};

// By sample: those of rank 0 first. The gradient of sample i is 1 in element i, so what becomes of
// it is the sample's weight.
std::vector<float> measured_weights(const std::vector<int>& samples) {
    std::vector<float> weights;
    on_uneven_ranks(samples, "", [&](Rank& rank, Communicator& communicator, Device& device) {
        const auto own = samples.begin() + rank.rank();
        const int before = std::accumulate(samples.begin(), own, 0);
        Weights model(device, std::accumulate(samples.begin(), samples.end(), 0));
        NaiveDdp ddp(communicator, device, model);
        std::vector<float> gradient(model.parameter().value.size());
        std::fill_n(gradient.begin() + before, *own, 1.0f / static_cast<float>(*own));
        model.parameter().gradient_for_writing().copy_from(gradient);
        ddp.average_gradients();
        communicator.synchronize(device.stream());
        if (rank.rank() == 0)
            weights = model.parameter().gradient().to_host();
    });
    return weights;
}

// Returns what a wrong weight tells, or "".
std::string cause_of_weight(const std::vector<int>& samples, std::size_t rank, double predicted) {
    const auto ranks = static_cast<double>(samples.size()),
               own = static_cast<double>(samples[rank]);
    const double all = std::accumulate(samples.begin(), samples.end(), 0.0);
    const auto is = [&](double wrong) { return std::abs(predicted - wrong) < 1e-9; };
    if (predicted == 0)
        return "Yours is 0: int divided by int drops the rest in C++.\n";
    if (is(1 / own))
        return "That is the weight in the rank's own mean; then the mean over the ranks is "
               "taken.\n";
    if (is(1 / ranks))
        return "That is the weight of a rank, and not of one of its samples.\n";
    if (is(own / all))
        return "That is the rank's share of the samples. A rank with MORE samples gives each of "
               "them LESS weight.\n";
    if (is(1 / all))
        return "So it would be if every sample counted the same: the next task makes it so.\n";
    return "";
}

void check_weights(const std::vector<int>& samples, const std::string& hint) {
    const std::vector<float> weights = measured_weights(samples);
    std::size_t i = 0;
    for (std::size_t r = 0; r < samples.size(); i += static_cast<std::size_t>(samples[r]), r++) {
        const double predicted = weight_of_sample(samples, static_cast<int>(r));
        const double measured = static_cast<double>(weights[i]);
        if (!(std::abs(predicted - measured) <= 0.01 * measured))
            throw Wrong("Ranks with " + to_string(samples) +
                        " samples: you predict that one of rank " + std::to_string(r) +
                        " has the weight " + std::to_string(predicted) +
                        "; in NaiveDdp's gradient it has " + std::to_string(measured) + ".\n" +
                        cause_of_weight(samples, r, predicted) + hint);
    }
}

void check_sample_weight() {
    check_weights({3, 1},
                  "Each rank's mean counts as much, whether it is made of one sample or of three.");
    check_weights({8, 1, 2}, "The case: three ranks.");
    check_weights({4}, "The case: one rank.");
}

// ---- Steps

// Sample `i` of all, in this step: no two are alike.
Batch batch_of(Device& device, int first, int count, int step) {
    std::vector<float> images;
    std::vector<int> labels;
    for (int i = first; i < first + count; i++) {
        for (int k = 0; k < inputs; k++)
            images.push_back(
                static_cast<float>((i * 37 + k * 101 + step * 53 + i * k * 7) % 64) / 32 - 1);
        labels.push_back((i + step) % classes);
    }
    return {Tensor(device, {count, inputs}, images), Labels(device, {count}, labels)};
}

std::unique_ptr<Sequential> make_network(Device& device) {
    Random random(5);
    auto network = make_mlp(device, random, {inputs, 7, classes});
    network->parameters()[1]->is_frozen = true;
    return network;
}

void learn(Module& model, const Batch& batch, Device& device) {
    Tape tape(device);
    tape.backward(cross_entropy(model.forward(tape.constant(batch.images)), batch.labels));
}

std::vector<double> gradients_of(const Module& model) {
    std::vector<double> all;
    for (const auto& parameter : model.parameters())
        if (!parameter->is_frozen)
            for (const float value : parameter->gradient().to_host())
                all.push_back(static_cast<double>(value));
    return all;
}
std::vector<double> values_of(const Module& model) {
    std::vector<double> all;
    for (const auto& parameter : model.parameters())
        for (const float value : parameter->value.to_host())
            all.push_back(static_cast<double>(value));
    return all;
}

bool are_near(const std::vector<double>& a, const std::vector<double>& b, double factor = 1) {
    double largest = 0, difference = 0;
    for (std::size_t i = 0; i < a.size(); i++) {
        largest = std::max(largest, std::abs(factor * b[i]));
        difference = std::max(difference, std::abs(a[i] - factor * b[i]));
    }
    return a.size() == b.size() && difference <= 1e-4 * largest;  // false for NaN
}

bool has_any_gradient(const Module& model) {
    return std::ranges::any_of(model.parameters(),
                               [](const auto& parameter) { return parameter->has_gradient(); });
}

// What one rank computes from all samples of a step, and the mean of the ranks' means.
struct Expected {
    std::vector<double> right, mean_of_means;
    double ranks, ranks_with_samples = 0;

    Expected(Device& device, const std::vector<int>& samples)
        : ranks(static_cast<double>(samples.size())) {
        const auto gradients = [&](int first, int count) {
            const auto model = make_network(device);
            learn(*model, batch_of(device, first, count, 0), device);
            return gradients_of(*model);
        };
        right = gradients(0, std::accumulate(samples.begin(), samples.end(), 0));
        mean_of_means.resize(right.size());
        int first = 0;
        for (const int count : samples) {
            if (count > 0) {
                const std::vector<double> own = gradients(first, count);
                ranks_with_samples++;
                for (std::size_t i = 0; i < own.size(); i++)
                    mean_of_means[i] += own[i] / ranks;
            }
            first += count;
        }
    }

    std::string what_is_wrong(const std::vector<double>& gradients) const {
        if (are_near(gradients, right))
            return "";
        if (std::ranges::any_of(gradients, [](double g) { return std::isnan(g); }))
            return "the gradient is NaN. The memory of gradient_for_writing() may hold anything, "
                   "also NaN, until it is filled.";
        if (are_near(gradients, mean_of_means))
            return "the gradient is the mean of the ranks' means. A sample counts for more if its "
                   "rank has few of them.";
        double a = 0, b = 0;
        for (std::size_t i = 0; i < right.size(); i++) {
            a += gradients[i] * right[i];
            b += right[i] * right[i];
        }
        const auto is = [&](double factor) { return std::abs(a / b - factor) < 1e-3; };
        if (are_near(gradients, right, a / b))
            return "the gradient is " + std::to_string(a / b) + " times what it should be. " +
                   (is(1 / ranks) ? "NaiveDdp divides the sum over the N ranks by N. So a rank "
                                    "with n of S samples gives it N n / S times its gradient."
                    : is(ranks_with_samples / ranks)
                        ? "NaiveDdp divides by the number of ALL ranks, also of those without a "
                          "batch."
                        : "Who divides by what, and how often?");
        return "the gradient is not that of the mean loss over all ranks' samples. A rank's own "
               "counts by its share of them. (int divided by int drops the rest.)";
    }
};

void check_step(const std::vector<int>& samples, const std::string& hint) {
    on_uneven_ranks(samples, hint, [&](Rank& rank, Communicator& communicator, Device& device) {
        const auto own = samples.begin() + rank.rank();
        const int all = std::accumulate(samples.begin(), samples.end(), 0);
        const auto model = make_network(device);
        const std::vector<double> before = values_of(*model);
        const std::optional<Expected> expected =
            all > 0 ? std::optional<Expected>(std::in_place, device, samples) : std::nullopt;
        NaiveDdp ddp(communicator, device, *model);
        std::optional<Batch> batch;
        if (*own > 0)
            batch = batch_of(device, std::accumulate(samples.begin(), own, 0), *own, 0);
        for (const auto& parameter : model->parameters())
            spoil_free_memory(device, parameter->value.shape(), NAN);
        const int counted = uneven_step({rank, device, *model, ddp}, batch);
        communicator.synchronize(device.stream());
        std::string wrong;
        if (counted != all)
            wrong = "you return " + std::to_string(counted) + " samples, and all ranks have " +
                    std::to_string(all) + ". (Ask them in each step.)";
        else if (all == 0)
            wrong =
                has_any_gradient(*model) ? "no rank has a sample, and you touch gradients." : "";
        else if (values_of(*model) != before)
            wrong = "the parameters have changed: leave the optimizer's step to the next task.";
        else if (model->parameters()[1]->has_gradient())
            wrong = "a frozen parameter has a gradient.";
        else
            wrong = expected->what_is_wrong(gradients_of(*model));
        throw_first_wrong(rank, wrong.empty()
                                    ? ""
                                    : "Ranks with " + to_string(samples) + " samples, on rank " +
                                          std::to_string(rank.rank()) + ": " + wrong + "\n" + hint);
    });
}

void check_uneven_step() {
    check_step({8, 1, 3}, "A rank's gradients must count by its samples: n_r / (n_0 + n_1 + ...).");
    check_step({6}, "The case: one rank.");
    check_step({3, 0, 2},
               "Rank 1 has no batch, and the others can't average without it. What does it have to "
               "give them, and what should it get?");
    check_step({0, 2, 3}, "The case: rank 0 has no batch, and the others have.");
    check_step({0, 0}, "The case: no rank has a batch, so this is no step.");
}

// ---- An epoch

// Batches of each rank by their samples; all ranks' samples of a step are numbered by rank.
using Plan = std::vector<std::vector<int>>;

int samples_in(const Plan& plan, std::size_t rank, std::size_t step) {
    return step < plan[rank].size() ? plan[rank][step] : 0;
}

std::vector<double> learnt_by_one(Device& device, const Plan& plan, std::size_t steps) {
    const auto model = make_network(device);
    Sgd optimizer(model->parameters(), 0.5, 0.9);
    for (std::size_t step = 0; step < steps; step++) {
        int all = 0;
        for (std::size_t r = 0; r < plan.size(); r++)
            all += samples_in(plan, r, step);
        learn(*model, batch_of(device, 0, all, static_cast<int>(step)), device);
        optimizer.step();
        optimizer.zero_gradients();
    }
    return values_of(*model);
}

void check_plan(const Plan& plan, const std::string& hint) {
    std::size_t most = 0;
    std::vector<int> sums;
    for (const std::vector<int>& batches : plan) {
        most = std::max(most, batches.size());
        sums.push_back(std::accumulate(batches.begin(), batches.end(), 0));
    }
    on_uneven_ranks(sums, hint, [&](Rank& rank, Communicator& communicator, Device& device) {
        const auto own = static_cast<std::size_t>(rank.rank());
        const auto model = make_network(device);
        const std::vector<double> right = learnt_by_one(device, plan, most);
        const std::vector<double> begin = values_of(*model);
        NaiveDdp ddp(communicator, device, *model);
        Sgd optimizer(model->parameters(), 0.5, 0.9);
        std::size_t step = 0;
        const auto next = [&]() -> std::optional<Batch> {
            const std::size_t now = step++;
            if (now >= plan[own].size())
                return std::nullopt;
            int first = 0;
            for (std::size_t r = 0; r < own; r++)
                first += samples_in(plan, r, now);
            return batch_of(device, first, plan[own][now], static_cast<int>(now));
        };
        const int steps = uneven_epoch({rank, device, *model, ddp}, next, optimizer);
        communicator.synchronize(device.stream());
        std::string wrong;
        if (static_cast<int>(step) > steps + 1)
            wrong = "you call next() " + std::to_string(step) + " times, and return " +
                    std::to_string(steps) +
                    " steps. Each call takes a batch, and a step in which only other ranks "
                    "have one is a step, too.";
        else if (steps != static_cast<int>(most))
            wrong = "you return " + std::to_string(steps) + " steps, and rank " +
                    std::to_string(std::distance(
                        plan.begin(), std::ranges::find(plan, most, &std::vector<int>::size))) +
                    " has " + std::to_string(most) + " batches.";
        else if (has_any_gradient(*model))
            wrong = "when you return a gradient is there: clear them after EACH step.";
        else if (most > 0 && values_of(*model) == begin)
            wrong =
                "the parameters are those of the beginning: who calls optimizer.step(), and "
                "are the gradients still there then?";
        else if (!are_near(values_of(*model), right))
            wrong = "after " + std::to_string(most) +
                    " steps the parameters are not those of one rank that has learnt from all "
                    "samples. (Are the gradients cleared between the steps? Does a rank "
                    "without a batch take the step, too?)";
        throw_first_wrong(rank, wrong.empty()
                                    ? ""
                                    : "Ranks with " + to_string(sums) + " samples, on rank " +
                                          std::to_string(rank.rank()) + ": " + wrong + "\n" + hint);
    });
}

void check_epoch() {
    const std::string hint =
        "A rank whose data has ended still has to come to every average, and can stop when no rank "
        "has a batch any more.";
    check_plan({{4, 4}, {4, 4, 4, 1}, {4, 4, 3}}, hint);
    check_plan({{4, 4, 2}}, "The case: one rank stops when its data has ended.");
    check_plan({{4, 4, 3}, {4}}, hint);
    check_plan({{}, {}}, "The case: no rank has any batch, so there is no step.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"sample_weight", check_sample_weight},
            {"uneven_step", check_uneven_step},
            {"epoch", check_epoch}};
}

}  // namespace ddp::test
