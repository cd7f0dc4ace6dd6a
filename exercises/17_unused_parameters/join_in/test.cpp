// The exercise join_in: each rank runs until its next sum, and again from the beginning once all
// ranks have brought their summands.
#include "exercises/17_unused_parameters/join_in.hpp"

#include <algorithm>
#include <cmath>
#include <string>

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

// ---- What is learnt, in tenths that tell ranks and batches apart

Numbers gradient_of(int rank, int batch, const Numbers& parameters) {
    Numbers gradient;
    for (std::size_t i = 0; i < parameters.size(); i++)
        gradient.push_back(0.1 * parameters[i] + rank + 1 + 10 * (batch + 1) +
                           100 * static_cast<double>(i));
    return gradient;
}
double loss_of(int rank, const Numbers& parameters) {
    return std::abs(parameters[0]) + rank;
}

using DivideBy = double (*)(double ranks, double active);
double all_ranks(double ranks, double) {
    return ranks;
}
double those_with_a_batch(double, double active) {
    return active;
}

JoinResult in_one_thread(const std::vector<int>& batches, const JoinTraining& training,
                         const Numbers& begin, int steps, DivideBy divide_by) {
    JoinResult right{begin, {}};
    for (int step = 0; step < steps; step++) {
        Numbers sum(begin.size(), 0);
        double active = 0, loss = 0;
        for (int rank = 0; rank < training.ranks; rank++) {
            if (step >= batches[static_cast<std::size_t>(rank)])
                continue;
            active++;
            const Numbers one = gradient_of(rank, step, right.parameters);
            for (std::size_t i = 0; i < sum.size(); i++)
                sum[i] += one[i];
        }
        for (std::size_t i = 0; i < sum.size(); i++)
            right.parameters[i] -=
                training.learning_rate * sum[i] / divide_by(training.ranks, active);
        if (training.validate_every == 0 || (step + 1) % training.validate_every != 0)
            continue;
        for (int rank = 0; rank < training.ranks; rank++)
            loss += loss_of(rank, right.parameters);
        right.validations.push_back(loss / training.ranks);
    }
    return right;
}

// ---- Running it

// Returns what train_joined returns on rank `rank`.
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
    if (training.validate_every > 0)
        training.validation_loss = [=](const Numbers& parameters) {
            return loss_of(rank, parameters);
        };
    return train_joined(data, training, begin, sum);
}

std::vector<JoinResult> run_ranks(const std::vector<int>& batches, const JoinTraining& training,
                                  const Numbers& begin, std::size_t max_sums) {
    struct Waits {};
    for (std::vector<Numbers> done;;) {  // the sums that all ranks have taken part in
        std::vector<JoinResult> results;
        Numbers sums;
        int came = 0;
        const std::string next = "sum " + std::to_string(done.size() + 1);
        for (int rank = 0; rank < training.ranks; rank++) {
            const auto sum = [&, call = std::size_t{0}](Numbers& numbers) mutable {
                if (call < done.size()) {
                    numbers = done[call++];
                    return;
                }
                if (came++ == 0)
                    sums.assign(numbers.size(), 0);
                if (numbers.size() != sums.size())
                    throw Wrong("In " + next + " rank " + std::to_string(rank) + " brings " +
                                std::to_string(numbers.size()) + " numbers, and another rank " +
                                std::to_string(sums.size()) +
                                ": all ranks must be at the same sum. (A rank without a batch "
                                "brings as many zeros, and validates when the others do.)");
                for (std::size_t i = 0; i < numbers.size(); i++)
                    sums[i] += numbers[i];
                throw Waits();
            };
            try {
                results.push_back(
                    run_rank(rank, batches[static_cast<std::size_t>(rank)], training, begin, sum));
            } catch (const Waits&) {
            }
        }
        if (came == 0)
            return results;
        if (came < training.ranks)
            throw Wrong(std::to_string(results.size()) + " of " + std::to_string(training.ranks) +
                        " ranks return before " + next +
                        ", and the others wait in it for ever: a rank without a batch must take "
                        "part in every sum that the others need.");
        if (done.size() == max_sums)
            throw Wrong("This is " + next + ", and " + std::to_string(max_sums) +
                        " are enough: one per step, one per validation, and one at the end. How "
                        "many ranks have a batch can travel with the gradients.");
        done.push_back(sums);
    }
}

bool are_close(const Numbers& a, const Numbers& b) {
    return std::ranges::equal(
        a, b, [](double x, double y) { return std::abs(x - y) <= 1e-9 * (1 + std::abs(y)); });
}

// Returns what wrong validations tell of the mistake, or ""; the parameters are right.
std::string cause_of_validations(int rank, const Numbers& yours, const Numbers& right, int ranks) {
    if (yours.size() != right.size())
        return " A validation comes after steps validate_every, 2 * validate_every, ..., counted "
               "from 1.";
    Numbers sums, own;
    for (const double loss : right) {
        own.push_back(loss - (ranks - 1) / 2.0 + rank);
        sums.push_back(loss * ranks);
    }
    return are_close(own, yours)
               ? " These are the rank's own losses, and not the mean over all ranks."
           : are_close(sums, yours)
               ? " These are sums over the ranks: divide them by the number of ALL ranks."
               : "";
}

void check(const std::vector<int>& batches, JoinTraining training, const std::string& hint) {
    training.ranks = static_cast<int>(batches.size());
    training.learning_rate = 0.125;
    const Numbers begin{1, -2, 4};
    const std::string about = "The ranks have " + text(batches) + " batches. ";
    trying(about + "validate_every is " + std::to_string(training.validate_every) + ". " + hint);
    const int steps = std::ranges::max(batches);
    const int validations = training.validate_every > 0 ? steps / training.validate_every : 0;
    std::vector<JoinResult> results;
    try {
        results =
            run_ranks(batches, training, begin, static_cast<std::size_t>(steps + validations + 1));
    } catch (const Wrong& wrong) {
        throw Wrong(about + wrong.what());
    }
    const auto result_of = [&](int as_many, DivideBy divide_by) {
        return in_one_thread(batches, training, begin, as_many, divide_by);
    };
    const JoinResult right =
        result_of(steps, training.divisor == Divisor::all_ranks ? all_ranks : those_with_a_batch);
    for (std::size_t i = 0; i < results.size(); i++) {
        const auto& [parameters, losses] = results[i];
        const std::string who = about + "At the end rank " + std::to_string(i) + " has the ";
        if (parameters != results[0].parameters)
            throw Wrong(who + "parameters (" + text(parameters) + "), and rank 0 has (" +
                        text(results[0].parameters) + "): all must take each step alike.\n" + hint);
        if (!are_close(parameters, right.parameters)) {
            std::string cause;
            const auto look = [&](const std::string& words, int as_many, DivideBy divide_by) {
                if (are_close(parameters, result_of(as_many, divide_by).parameters))
                    cause = " You " + words;
            };
            look("divide by the number of all ranks, whatever training.divisor says.", steps,
                 all_ranks);
            look("divide by the number of ranks that have a batch, whatever training.divisor says.",
                 steps, those_with_a_batch);
            look("don't divide the sum of the gradients by anything.", steps,
                 [](double, double) { return 1.0; });
            look("stop when the FIRST rank has no batch left; the batches of the others are lost.",
                 std::ranges::min(batches), all_ranks);
            throw Wrong(who + "parameters (" + text(parameters) + "); right are (" +
                        text(right.parameters) + ")." + cause + "\n" + hint);
        }
        if (!are_close(losses, right.validations))
            throw Wrong(who + "validation losses (" + text(losses) + "); right are (" +
                        text(right.validations) + ")." +
                        cause_of_validations(static_cast<int>(i), losses, right.validations,
                                             training.ranks) +
                        "\n" + hint);
    }
}

void check_divisor(Divisor divisor) {
    check({2, 2}, {.divisor = divisor}, "The case: both ranks have a batch in each step.");
    check({3, 1}, {.divisor = divisor},
          divisor == Divisor::all_ranks
              ? "The case: rank 1 has one batch. Then it brings zeros, and counts as before."
              : "The case: rank 1 has one batch. Then it doesn't count any more.");
    check({0, 4, 2}, {.divisor = divisor}, "The case: rank 0 has no batch at all.");
    check({2, 7, 7, 1}, {.divisor = divisor}, "The case: four ranks.");
    check({0, 0}, {.divisor = divisor}, "The case: no rank has a batch, so there is no step.");
    check({5}, {.divisor = divisor}, "The case: one rank.");
}

void check_validate() {
    check({4, 4}, {.validate_every = 2}, "The case: four batches each, so two validations.");
    check({1, 6}, {.validate_every = 2},
          "The case: rank 0 has no batch left, but still its part of the validation data.");
    check({5, 0, 2}, {.divisor = Divisor::ranks_with_a_batch, .validate_every = 3},
          "The case: three ranks. A validation is a mean over all of them, whatever the divisor.");
    check({2, 3}, {.validate_every = 1}, "The case: a validation after every step.");
    check({2, 3}, {.validate_every = 9}, "The case: fewer steps than that, so no validation.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"together", [] { check_divisor(Divisor::all_ranks); }},
            {"divisor", [] { check_divisor(Divisor::ranks_with_a_batch); }},
            {"validate", check_validate}};
}

}  // namespace ddp::test
