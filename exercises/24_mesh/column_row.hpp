#pragma once
// Exercise column_row: a feed-forward layer cut over ranks, y = w2 relu(w1 x + b1) + b2.
//
//     w1 =  1  2     x = 3     w2 = 10  1     b1 = 0 0     b2 = 7
//          -1  0         1
//
//     rank 0 has   1 2  and 10     relu(5)  = 5     brings 50
//     rank 1 has  -1 0  and  1     relu(-3) = 0     brings  0     y = 50 + 0 + 7, on both
//
// You may call: sum_over_ranks(numbers), an all-reduce of a std::vector<double>.
// The check also tries: one rank, four ranks.
#include <cstddef>
#include <vector>

#include "exercises/not_implemented.hpp"
#include "exercises/sum_over_ranks.hpp"

namespace ddp {

// A weight, or its gradient: outputs x inputs numbers, row by row.
struct Weight {
    std::size_t outputs, inputs;
    std::vector<double> values = std::vector<double>(outputs * inputs);

    double& at(std::size_t output, std::size_t input) { return values[output * inputs + input]; }
    double at(std::size_t output, std::size_t input) const {
        return values[output * inputs + input];
    }
};

// A layer, a rank's part of one, or the gradients of either.
struct FeedForwardWeights {
    Weight w1;  // hidden x inputs
    std::vector<double> b1;
    Weight w2;  // outputs x hidden
    std::vector<double> b2;
};

// Task forward. part_of() returns the part of rank `rank`: 1 / ranks of the hidden numbers, which
// divide, in the order of the ranks. Every rank has the whole b2.
FeedForwardWeights part_of(const FeedForwardWeights& whole, int rank, int ranks);
// Returns y, the same on all ranks. Every rank calls sum_over_ranks once.
std::vector<double> part_forward(const FeedForwardWeights& part, const std::vector<double>& x,
                                 const SumOverRanks& sum_over_ranks);

struct PartGradients {
    std::vector<double> x;          // of the whole layer's x, the same on all ranks
    FeedForwardWeights parameters;  // of this rank's own
};

// Task backward. dy is the gradient of y, the same on all ranks. Every rank calls sum_over_ranks
// once.
PartGradients part_backward(const FeedForwardWeights& part, const std::vector<double>& x,
                            const std::vector<double>& dy, const SumOverRanks& sum_over_ranks);

}  // namespace ddp
