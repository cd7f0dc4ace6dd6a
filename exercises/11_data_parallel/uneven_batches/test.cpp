// The exercise uneven_batches, beside one rank that learns from the samples of all.
#include "exercises/11_data_parallel/uneven_batches.hpp"

#include <numeric>

#include "10_nodes/make_communicator.hpp"
#include "exercises/support/junk.hpp"
#include "exercises/support/ranks.hpp"
#include "exercises/support/small_network.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Counts = std::vector<int>;  // samples of a step, by rank

void check_sample_weight() {
    const double yours = weight_of_sample({8, 1, 2}, 0);
    const std::pair<double, std::string> causes[] = {
        {0, "0: int divided by int drops the rest in C++."},
        {1 / 8.0, "1/8. That is the weight in its mean; then the mean over the ranks is taken."},
        {1 / 11.0, "1/11, as if every sample counted the same: the next task makes it so."},
        {8 / 11.0, "8/11, the rank's share of the samples. More samples: LESS weight for each."}};
    for (const auto& [weight, words] : causes)
        if (std::abs(yours - weight) < 1e-9)
            throw Wrong("Ranks with 8, 1 and 2 samples: you say that one of rank 0 weighs " +
                        words);
    if (!(std::abs(yours * 24 - 1) + std::abs(weight_of_sample({8, 1, 2}, 2) * 6 - 1) < 1e-9))
        throw Wrong("Ranks with 8, 1 and 2 samples: one of rank 0 weighs 1/24, one of rank 2 1/6.");
}

// The samples that the ranks from `first` to before `last` have in a step, if they have any.
std::optional<Batch> batch_of(Device& device, const Counts& counts, std::size_t step,
                              std::size_t first, std::size_t last) {
    std::vector<int> samples;
    for (std::size_t rank = first; rank < last; rank++)
        for (int i = 0; i < counts[rank]; i++)
            samples.push_back(static_cast<int>(step * 100 + rank * 10) + i);
    return samples.empty() ? std::nullopt : std::optional(small_batch(device, samples));
}

// Runs `check` on so many ranks, and throws the words that it returns, and what the test is about.
void on_replicas(std::size_t ranks, const std::string& about,
                 const std::function<std::string(const Replica&)>& check) {
    const auto work = [&](Rank& rank) {
        auto& device = make_run_scoped<Device>(rank, 4 << 20);
        const auto communicator = make_communicator("native", rank, 1 << 20);
        const auto model = make_small_network(device, 5);
        NaiveDdp ddp(*communicator, device, *model);
        const std::string wrong = check({rank, device, *model, ddp});
        communicator->synchronize(device.stream());
        throw_first_wrong(rank, wrong.empty() ? "" : wrong + " " + about);
    };
    on_ranks_with_hint(static_cast<int>(ranks), work, std::to_string(ranks) + " ranks", about);
}

std::string wrong_gradient(const Replica& replica, const Counts& counts) {
    Device& device = replica.device;
    const auto one = make_small_network(device, 5), means = make_small_network(device, 5);
    Tape tape(device);
    tape.backward(small_loss(tape, *one, *batch_of(device, counts, 0, 0, counts.size())));
    for (std::size_t rank = 0; rank < counts.size(); rank++)
        if (const auto batch = batch_of(device, counts, 0, rank, rank + 1))
            tape.backward(small_loss(tape, *means, *batch));
    const std::vector<float> yours = gradients_of(replica.model), right = gradients_of(*one);
    const float nth = 1 / static_cast<float>(counts.size());
    return are_near(yours, right) ? ""
           : std::isnan(yours[0]) ? "The gradient is NaN: gradient_for_writing() may hold anything."
           : are_near(yours, gradients_of(*means), nth)
               ? "The gradient is the mean of the ranks' means."
           : are_near(yours, right, nth)
               ? "The gradient is one Nth of what it should be: NaiveDdp divides the sum over the "
                 "N ranks by N."
               : "The gradient is not that of the mean loss over all ranks' samples.";
}

void check_step(const Counts& counts, const std::string& about) {
    on_replicas(counts.size(), about, [&](const Replica& replica) -> std::string {
        const int all = std::reduce(counts.begin(), counts.end());
        const auto own = static_cast<std::size_t>(replica.rank.rank());
        const auto batch = batch_of(replica.device, counts, 0, own, own + 1);
        for (const auto& parameter : replica.model.parameters())
            spoil_free_memory(replica.device, parameter->value.shape(), NAN);
        const int counted = uneven_step(replica, batch);
        if (counted != all)
            return "You return " + std::to_string(counted) + " samples, and all ranks have " +
                   std::to_string(all) + ".";
        if (all > 0)
            return wrong_gradient(replica, counts);
        return replica.model.parameters()[0]->has_gradient() ? "You touch gradients." : "";
    });
}

void check_uneven_step() {
    check_step({8, 1, 3}, "(The ranks have 8, 1 and 3 samples.)");
    check_step({6}, "(One rank has 6 samples.)");
    check_step({3, 0, 2},
               "(The ranks have 3, 0 and 2 samples. Rank 1 has to come to the average, "
               "too: what does it have to give, and what should it get?)");
    check_step({0, 0}, "(No rank has a batch: this is no step.)");
}

// `steps` has what the ranks have in each step.
void check_steps(std::size_t ranks, const std::vector<Counts>& steps) {
    const std::string about =
        "(Together the ranks have batches for " + std::to_string(steps.size()) +
        " steps. A rank whose data has ended still has to come to every average, and can stop when "
        "no rank has a batch any more.)";
    on_replicas(ranks, about, [&](const Replica& replica) -> std::string {
        Device& device = replica.device;
        const auto own = static_cast<std::size_t>(replica.rank.rank());
        const auto one = make_small_network(device, 5);
        Sgd optimizer(replica.model.parameters(), 0.5, 0.9), of_one(one->parameters(), 0.5, 0.9);
        Tape tape(device);
        std::vector<std::optional<Batch>> batches;
        for (std::size_t i = 0; i < steps.size(); i++) {
            tape.backward(small_loss(tape, *one, *batch_of(device, steps[i], i, 0, ranks)));
            of_one.step();
            of_one.zero_gradients();
            batches.push_back(batch_of(device, steps[i], i, own, own + 1));
        }
        std::size_t step = 0;
        const auto next = [&] { return step < steps.size() ? batches[step++] : std::nullopt; };
        const int counted = uneven_epoch(replica, next, optimizer);
        if (counted != static_cast<int>(steps.size()))
            return "You return " + std::to_string(counted) + " steps.";
        if (replica.model.parameters()[0]->has_gradient())
            return "When you return a gradient is there: clear them after EACH step.";
        if (!are_near(values_of(replica.model), values_of(*one)))
            return "The parameters are not those of one rank that has learnt from all samples: who "
                   "calls optimizer.step(), also in a step without a batch?";
        return "";
    });
}

void check_epoch() {
    check_steps(3, {{4, 4, 4}, {4, 4, 4}, {0, 4, 3}, {0, 1, 0}});
    check_steps(1, {{4}, {2}});
    check_steps(2, {});
}

}  // namespace

std::vector<Task> tasks() {
    return {{"sample_weight", check_sample_weight},
            {"uneven_step", check_uneven_step},
            {"epoch", check_epoch}};
}

}  // namespace ddp::test
