#pragma once
// Exercise sync_backward: the gradients of a normalisation whose statistics are those of all ranks.
//
//     one channel, weight 1       rank 0     rank 1
//     x                           -1  1      -1  1      mean 0, inverse_std 1
//     dy                           4  0       0  0
//     gradient of x                2  0      -2  0      rank 1's x moves rank 0's outputs, too
//     gradients of weight, bias   -4  4       0  0      the rank's own: DDP averages them
//
// You may call: sum_over_ranks(numbers), an all-reduce of a std::vector<double>.
// The check also tries: one rank, different numbers of values, a rank without any.
#include <vector>

#include "exercises/not_implemented.hpp"
#include "exercises/sum_over_ranks.hpp"

namespace ddp {

// One rank's values: y = weight * (x - mean) * inverse_std + bias, and dy is the gradient of y.
struct Normalised {
    std::vector<double> x, dy;
    double mean, inverse_std;  // 1 / sqrt(variance + eps), and the variance is divided by the count
    double weight;
};

struct NormalisedGradients {
    std::vector<double> x;        // of the sum of all ranks' losses
    double weight = 0, bias = 0;  // of this rank's own loss
};

// Task batch_norm. Returns the gradients of batch normalisation. Every rank calls sum_over_ranks
// once, with at most 3 numbers; it doesn't know how many values the others have.
NormalisedGradients batch_norm_backward(const Normalised& forward,
                                        const SumOverRanks& sum_over_ranks);

// Task rms_norm. Returns the gradients of y = weight * x / rms, where rms is sqrt(mean of all x² +
// eps) over all ranks: forward.mean and the gradient of bias are 0, forward.inverse_std is 1 / rms.
// Every rank calls sum_over_ranks once, with at most 2 numbers.
NormalisedGradients rms_norm_backward(const Normalised& forward,
                                      const SumOverRanks& sum_over_ranks);

}  // namespace ddp
