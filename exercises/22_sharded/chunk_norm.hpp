#pragma once
// The contract of the exercise chunk_norm: gradients are clipped by the norm of all of them, and no
// rank has all of them.
#include <cstddef>
#include <vector>

#include "exercises/not_implemented.hpp"
#include "exercises/sum_over_ranks.hpp"

namespace ddp {

// The gradients of the model that one rank has.
struct RankGradients {
    std::vector<float> chunk;  // its chunk of the gradients that are sharded
    std::size_t own;           // of the chunk's elements; behind them is padding, which is anything
    std::vector<float> whole;  // the gradients that are not sharded: all ranks have the same ones
};

// Task global_norm. Returns the 2-norm of the model's gradients, each of which counts once. Every
// rank calls sum_over_ranks once, with one number. Adds in doubles: the square of a gradient may be
// more than a float holds.
double global_norm(const RankGradients& gradients, const SumOverRanks& sum_over_ranks);

// Task clip. Multiplies this rank's gradients by max_norm / (norm + 1e-6), as PyTorch does, but
// leaves them alone where that would make them longer. `norm` is what global_norm has returned, and
// max_norm is 0 or more.
void clip(RankGradients& gradients, double norm, double max_norm);

// Squares are added up in blocks of so many elements.
inline constexpr std::size_t norm_block = 64;

// Task same_bits. Returns the norm of `count` gradients, from 1 to 2^31 - 1, of which this rank has
// chunk[0], ... as numbers begin, begin + 1, ...: added in doubles, and in the same bits whatever
// the number of ranks. `begin` is a multiple of norm_block. Every rank calls sum_over_ranks once,
// with at most one number for each block of the model; the sum of a number and zeros is that
// number.
double norm_by_blocks(const std::vector<float>& chunk, std::size_t begin, std::size_t count,
                      const SumOverRanks& sum_over_ranks);

}  // namespace ddp
