#pragma once
// The contract of the exercise join_in: ranks with different numbers of batches train together, and
// nobody hangs. All on the host, with small numbers.
#include <functional>
#include <vector>

#include "exercises/not_implemented.hpp"
#include "exercises/sum_over_ranks.hpp"

namespace ddp {

// What one rank has. It does not know what the others have, nor how many batches.
struct RankData {
    int batches;  // 0 .. batches - 1, one a step; there may be none
    // Of the mean loss of a batch. As many numbers as there are parameters.
    std::function<std::vector<double>(int batch, const std::vector<double>& parameters)> gradient;
};

// What the sum of the gradients is divided by.
enum class Divisor { all_ranks, ranks_with_a_batch };

struct JoinTraining {
    int ranks = 1;
    double learning_rate = 0.1;
    Divisor divisor = Divisor::all_ranks;
    // After every so many steps all ranks validate; 0: never.
    int validate_every = 0;
    // Of this rank's part of the validation data. All parts are equally large.
    std::function<double(const std::vector<double>& parameters)> validation_loss = {};
};

struct JoinResult {
    std::vector<double> parameters;   // the same on all ranks
    std::vector<double> validations;  // the mean loss over all ranks, each time; the same, too
};

// Trains with plain SGD from `parameters`, which are the same on all ranks, until no rank has a
// batch left. All ranks call it together. In a step `sum` may be called once, for a validation once
// more, and once at the end.
//
// Task together. In each step, parameter -= learning_rate * (sum of the gradients of the ranks that
// have a batch) / ranks.
// Task divisor. The same, divided by what `training.divisor` says.
// Task validate. After steps validate_every, 2 * validate_every, ...: the mean of validation_loss.
JoinResult train_joined(const RankData& data, const JoinTraining& training,
                        std::vector<double> parameters, const SumOverRanks& sum);

}  // namespace ddp
