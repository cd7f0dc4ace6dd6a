#pragma once
// The contract of the exercise join_in: ranks with different numbers of batches train together, and
// no rank hangs. Everything is on the host, with small numbers.
#include <functional>
#include <vector>

#include "exercises/not_implemented.hpp"
#include "exercises/sum_over_ranks.hpp"

namespace ddp {

// The data of one rank. It does not know the data of the others, nor how many batches they have.
struct RankData {
    int batches;  // their number; batch i belongs to step i, from 0; there may be none
    // Returns the gradient of the batch's mean loss: as many numbers as there are parameters.
    std::function<std::vector<double>(int batch, const std::vector<double>& parameters)> gradient;
};

// The divisor of the sum of the gradients.
enum class Divisor { all_ranks, ranks_with_a_batch };

struct JoinTraining {
    int ranks = 1;
    double learning_rate = 0.1;
    Divisor divisor = Divisor::all_ranks;
    // After every so many steps all ranks validate; 0: never.
    int validate_every = 0;
    // Returns the mean loss of this rank's section of the validation data. All sections have the
    // same size.
    std::function<double(const std::vector<double>& parameters)> validation_loss = {};
};

struct JoinResult {
    std::vector<double> parameters;   // the same on all ranks
    std::vector<double> validations;  // the mean loss over all ranks, each time; the same on all
};

// Trains with plain SGD from `parameters`, which are the same on all ranks, until no rank has a
// batch left, and returns the result. All ranks call it together. `sum` may be called once in each
// step, once more for a validation, and once at the end.
//
// Task together. In each step, parameter -= learning_rate * (sum of the gradients of the ranks that
// have a batch) / ranks.
// Task divisor. The same, with the divisor that `training.divisor` names.
// Task validate. After steps validate_every, 2 * validate_every, ...: the mean of validation_loss
// over all ranks.
JoinResult train_joined(const RankData& data, const JoinTraining& training,
                        std::vector<double> parameters, const SumOverRanks& sum);

}  // namespace ddp
