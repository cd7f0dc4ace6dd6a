// The exercise uneven_batches, beside what the chapter's NaiveDdp does and beside one rank that
// learns from the samples of all.
#include "exercises/10_data_parallel/uneven_batches.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "03_network/cross_entropy.hpp"
#include "03_network/models.hpp"
#include "tests/exercises/support/ranks.hpp"
#include "tests/exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr std::size_t device_memory = 4 << 20;
constexpr int inputs = 5, classes = 3;

std::string text_of(const std::vector<int>& samples) {
    std::string text;
    for (std::size_t r = 0; r < samples.size(); r++)
        text += (r == 0                   ? ""
                 : r + 1 < samples.size() ? ", "
                                          : " and ") +
                std::to_string(samples[r]);
    return text;
}

// Runs `work` on as many ranks as there are `samples`; `hint` is for a rank that waits for ever.
void on_uneven_ranks(const std::vector<int>& samples, const std::string& hint,
                     const std::function<void(Rank&, Communicator&, Device&)>& work) {
    try {
        on_ranks(static_cast<int>(samples.size()), [&](Rank& rank) {
            auto& device = make_run_scoped<Device>(rank, device_memory);
            const auto communicator = make_communicator("native", rank, 1 << 20);
            work(rank, *communicator, device);
        });
    } catch (const RunFailed& failure) {
        throw std::runtime_error("Ranks with " + text_of(samples) + " samples: " + failure.what() +
                                 ".\n" + hint);
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

void check_weights(const std::vector<int>& samples, const std::string& hint) {
    const std::vector<float> weights = measured_weights(samples);
    std::size_t i = 0;
    for (std::size_t r = 0; r < samples.size(); i += static_cast<std::size_t>(samples[r]), r++) {
        const double predicted = weight_of_sample(samples, static_cast<int>(r));
        const double measured = static_cast<double>(weights[i]);
        if (!(std::abs(predicted - measured) <= 0.01 * measured))
            throw Wrong(
                "Ranks with " + text_of(samples) + " samples: you predict that one of rank " +
                std::to_string(r) + " has the weight " + std::to_string(predicted) +
                "; in NaiveDdp's gradient it has " + std::to_string(measured) + ".\n" + hint);
    }
}

void check_sample_weight() {
    check_weights({4}, "One rank: a mean over its samples.");
    check_weights({4, 4}, "Each rank has a mean over its own, and then the ranks' mean is taken.");
    check_weights(
        {8, 1, 2},
        "Each rank's mean counts as much, whether it was made of one sample or of eight.");
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

// What one rank computes from all samples of a step, and the mean of the ranks' means.
struct Expected {
    std::vector<double> right, mean_of_means;

    Expected(Device& device, const std::vector<int>& samples) {
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
                for (std::size_t i = 0; i < own.size(); i++)
                    mean_of_means[i] += own[i] / static_cast<double>(samples.size());
            }
            first += count;
        }
    }

    std::string what_is_wrong(const std::vector<double>& gradients) const {
        if (are_near(gradients, right))
            return "";
        if (are_near(gradients, mean_of_means))
            return "the gradient is the mean of the ranks' means. A sample of a rank with few of "
                   "them counts for more than one of a rank with many.";
        double a = 0, b = 0;
        for (std::size_t i = 0; i < right.size(); i++) {
            a += gradients[i] * right[i];
            b += right[i] * right[i];
        }
        if (are_near(gradients, right, a / b))
            return "the gradient is " + std::to_string(a / b) +
                   " times what it should be. Who divides by what, and how often?";
        return "the gradient is not that of the mean loss over the samples of all ranks.";
    }
};

void check_step(const std::vector<int>& samples, const std::string& hint) {
    on_uneven_ranks(samples, hint, [&](Rank& rank, Communicator& communicator, Device& device) {
        const auto own = samples.begin() + rank.rank();
        const int all = std::accumulate(samples.begin(), samples.end(), 0);
        const auto model = make_network(device);
        const std::vector<double> before = values_of(*model);
        const Expected expected(device, samples);
        NaiveDdp ddp(communicator, device, *model);
        std::optional<Batch> batch;
        if (*own > 0)
            batch = batch_of(device, std::accumulate(samples.begin(), own, 0), *own, 0);
        const int counted = uneven_step({rank, device, *model, ddp}, batch);
        communicator.synchronize(device.stream());
        std::string wrong;
        if (counted != all)
            wrong = "you return " + std::to_string(counted) + " samples.";
        else if (model->parameters()[1]->has_gradient())
            wrong = "a frozen parameter has a gradient.";
        else
            wrong = expected.what_is_wrong(gradients_of(*model));
        throw_first_wrong(rank, wrong.empty()
                                    ? ""
                                    : "Ranks with " + text_of(samples) + " samples, on rank " +
                                          std::to_string(rank.rank()) + ": " + wrong + "\n" + hint);
    });
}

void check_uneven_step() {
    check_step({6}, "One rank: nothing to average.");
    check_step({4, 4}, "All ranks have as many samples: this is what NaiveDdp does by itself.");
    check_step({8, 1, 3}, "A rank's gradients must count by its samples: n_r / (n_0 + n_1 + ...).");
    check_step({3, 0, 2},
               "Rank 1 has no batch. The others cannot average without it: what does it have to "
               "give them, and what should it get?");
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
        if (steps != static_cast<int>(most))
            wrong = "you take " + std::to_string(steps) + " steps, and rank " +
                    std::to_string(std::distance(
                        plan.begin(), std::ranges::find(plan, most, &std::vector<int>::size))) +
                    " has " + std::to_string(most) + " batches.";
        else if (!are_near(values_of(*model), right))
            wrong = "after " + std::to_string(most) +
                    " steps the parameters are not those of one rank that has learnt from the "
                    "samples of all. (Are the gradients cleared between the steps?)";
        throw_first_wrong(rank, wrong.empty()
                                    ? ""
                                    : "Ranks with " + text_of(sums) + " samples, on rank " +
                                          std::to_string(rank.rank()) + ": " + wrong + "\n" + hint);
    });
}

void check_epoch() {
    const std::string hint =
        "A rank whose data has ended still has to come to every average, and may stop when no rank "
        "has a batch any more.";
    check_plan({{4, 4, 2}}, "One rank stops when its data has ended.");
    check_plan({{4, 4, 2}, {4, 4, 1}}, hint);
    check_plan({{4, 4}, {4, 4, 4, 1}, {4, 4, 3}}, hint);
    check_plan({{}, {2}}, hint);
}

}  // namespace

std::vector<Task> tasks() {
    return {{"sample_weight", check_sample_weight},
            {"uneven_step", check_uneven_step},
            {"epoch", check_epoch}};
}

}  // namespace ddp::test
