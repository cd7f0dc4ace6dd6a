#pragma once
// Exercise join_in: ranks with different numbers of batches train together, and none hangs.
//
//     one parameter, 10 at first; the learning rate is 1; the divisor is all_ranks
//
//                          step 1           step 2      end
//     rank 0's gradient    2                .           .
//     rank 1's gradient    4                4           .
//     the parameter        10 - 6/2 = 7     7 - 4/2 = 5     on both ranks
//
// You may call: the functions in RankData and JoinTraining, and sum(numbers), an all-reduce of a
// std::vector<double>.
// The check also tries: a rank without any batch, none at all, one rank, four ranks.
#include <functional>
#include <vector>

#include "exercises/not_implemented.hpp"
#include "exercises/sum_over_ranks.hpp"

namespace ddp {

// One rank's own data; it doesn't know the others'.
struct RankData {
    int batches;  // batch i belongs to step i, from 0
    // Returns one number for each parameter.
    std::function<std::vector<double>(int batch, const std::vector<double>& parameters)> gradient;
};

enum class Divisor { all_ranks, ranks_with_a_batch };

struct JoinTraining {
    int ranks = 1;
    double learning_rate = 0.1;
    Divisor divisor = Divisor::all_ranks;
    int validate_every = 0;  // steps; 0: never
    // Returns the mean loss of this rank's part of the validation data. All parts are of one size.
    std::function<double(const std::vector<double>& parameters)> validation_loss = {};
};

struct JoinResult {
    std::vector<double> parameters;
    std::vector<double> validations;  // the mean loss over all ranks, each time
};

// Trains until no rank has a batch left, and returns the result, the same on all ranks. `sum` may
// be called once per step, once more per validation, and once at the end.
//
// Task together. parameter -= learning_rate * (sum of the gradients of all batches) / ranks.
// Task divisor. Divides by what training.divisor says.
// Task validate. After every validate_every steps, adds a validation.
JoinResult train_joined(const RankData& data, const JoinTraining& training,
                        std::vector<double> parameters, const SumOverRanks& sum);

}  // namespace ddp
