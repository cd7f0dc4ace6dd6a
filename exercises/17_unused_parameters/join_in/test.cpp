// The exercise join_in, beside one thread that has the batches of all ranks.
#include "exercises/17_unused_parameters/join_in.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "exercises/support/sums.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Numbers = std::vector<double>;

template <class Number>
std::string text(const std::vector<Number>& values) {
    std::string all;
    for (const Number value : values)
        all += (all.empty() ? "" : ", ") + std::to_string(value);
    return all;
}

bool are_close(const Numbers& a, const Numbers& b) {
    return std::ranges::equal(
        a, b, [](double x, double y) { return std::abs(x - y) <= 1e-9 * (1 + std::abs(y)); });
}

// Both tell ranks and batches apart.
Numbers gradient_of(int rank, int batch, Numbers parameters) {
    for (double& number : parameters)
        number = 0.1 * number + rank + 10 * batch + 11;
    return parameters;
}
double loss_of(int rank, const Numbers& parameters) {
    return std::abs(parameters[0]) + rank;
}

JoinResult in_one_thread(const std::vector<int>& batches, const JoinTraining& training,
                         const Numbers& begin) {
    JoinResult right{begin, {}};
    for (int step = 1; step <= std::ranges::max(batches); step++) {
        Numbers sum(begin.size(), 0);
        double active = 0, loss = 0;
        for (int rank = 0; rank < training.ranks; rank++) {
            if (step > batches[static_cast<std::size_t>(rank)])
                continue;
            active++;
            const Numbers one = gradient_of(rank, step - 1, right.parameters);
            for (std::size_t i = 0; i < sum.size(); i++)
                sum[i] += one[i];
        }
        const double divisor = training.divisor == Divisor::all_ranks ? training.ranks : active;
        for (std::size_t i = 0; i < sum.size(); i++)
            right.parameters[i] -= training.learning_rate * sum[i] / divisor;
        for (int rank = 0; rank < training.ranks; rank++)
            loss += loss_of(rank, right.parameters) / training.ranks;
        if (training.validate_every > 0 && step % training.validate_every == 0)
            right.validations.push_back(loss);
    }
    return right;
}

JoinResult run_rank(int rank, int batches, JoinTraining training, const Numbers& begin,
                    const SumOverRanks& sum) {
    const RankData data{batches, [=](int batch, const Numbers& parameters) {
                            if (batch < 0 || batch >= batches)
                                throw Wrong("Rank " + std::to_string(rank) + " has " +
                                            std::to_string(batches) +
                                            " batches, and you ask for batch " +
                                            std::to_string(batch) + ", counted from 0.");
                            return gradient_of(rank, batch, parameters);
                        }};
    training.validation_loss = [=](const Numbers& parameters) { return loss_of(rank, parameters); };
    return train_joined(data, training, begin, sum);
}

void check(const std::vector<int>& batches, JoinTraining training, const std::string& hint) {
    training.ranks = static_cast<int>(batches.size());
    training.learning_rate = 0.125;
    const Numbers begin{1, -2, 4};
    const std::string about = "The ranks have " + text(batches) + " batches: ";
    trying(about + hint);
    const JoinResult right = in_one_thread(batches, training, begin);
    const std::size_t steps = static_cast<std::size_t>(std::ranges::max(batches));
    std::vector<JoinResult> results;
    try {
        results = with_sums(training.ranks, steps + right.validations.size() + 1,
                            [&](int rank, const SumOverRanks& sum) {
                                return run_rank(rank, batches[static_cast<std::size_t>(rank)],
                                                training, begin, sum);
                            });
    } catch (const Wrong& wrong) {
        throw Wrong(about + wrong.what() +
                    "\nA rank without a batch takes part in every sum that the others need, with "
                    "as many zeros, and validates when they do.");
    }
    for (std::size_t i = 0; i < results.size(); i++) {
        const auto& [parameters, losses] = results[i];
        const std::string who = about + "at the end rank " + std::to_string(i) + " has the ";
        if (!are_close(parameters, results[0].parameters))
            throw Wrong(who + "parameters (" + text(parameters) + "), and rank 0 has (" +
                        text(results[0].parameters) + "): all must take each step alike.");
        if (!are_close(parameters, right.parameters))
            throw Wrong(who + "parameters (" + text(parameters) + "); right are (" +
                        text(right.parameters) + ").\n" + hint);
        if (!are_close(losses, right.validations))
            throw Wrong(who + "validation losses (" + text(losses) + "); right are (" +
                        text(right.validations) + ").\n" + hint);
    }
}

void check_together() {
    check({2, 2}, {}, "Both ranks have a batch in each step: divide the sum by their number.");
    check({3, 1}, {}, "Rank 1 has one batch. Then it brings zeros, and counts as before.");
    check({0, 4, 2}, {}, "Rank 0 has no batch at all.");
    check({2, 7, 7, 1}, {}, "Four ranks.");
    check({0, 0}, {}, "No rank has a batch, so there is no step.");
    check({5}, {}, "One rank.");
}

void check_divisor() {
    constexpr Divisor active = Divisor::ranks_with_a_batch;
    check({3, 1}, {.divisor = active}, "Rank 1 has one batch. Then it doesn't count any more.");
    check({0, 4, 2}, {.divisor = active}, "Rank 0 has no batch, and never counts.");
    check({0, 0}, {.divisor = active}, "No rank has a batch, so there is no step.");
}

void check_validate() {
    check({4, 4}, {.validate_every = 2}, "After steps 2 and 4: the mean of the ranks' losses.");
    check({1, 6}, {.validate_every = 2},
          "Rank 0 has no batch left, but still its validation data.");
    check({5, 0, 2}, {.divisor = Divisor::ranks_with_a_batch, .validate_every = 3},
          "A validation is a mean over all ranks, whatever the divisor.");
    check({2, 3}, {.validate_every = 9}, "Fewer steps than that, so no validation.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"together", check_together}, {"divisor", check_divisor}, {"validate", check_validate}};
}

}  // namespace ddp::test
