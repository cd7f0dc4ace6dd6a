#pragma once
// Exercise chunk_norm: the norm of all gradients, where no rank has all of them.
//
//                chunk              whole (on all ranks)
//     rank 0     1   2              4
//     rank 1     2   (padding)      4        norm = sqrt(1 + 4 + 4 + 16) = 5
//
//     clipped to a norm of 1: all gradients times 1 / 5.000001
//
// You may call: sum_over_ranks(numbers), an all-reduce of a std::vector<double>.
// The check also tries: one rank, up to seven; ranks without an own gradient, NaN as padding.
#include <cstddef>
#include <vector>

#include "exercises/not_implemented.hpp"
#include "exercises/sum_over_ranks.hpp"

namespace ddp {

// One rank's gradients.
struct RankGradients {
    std::vector<float> chunk;  // of the gradients that are sharded
    std::size_t own;           // elements of the chunk, before its padding
    std::vector<float> whole;  // the gradients that are not sharded
};

// Task global_norm. Returns the 2-norm of all gradients, added up in doubles. Every rank calls
// sum_over_ranks once, with one number.
double global_norm(const RankGradients& gradients, const SumOverRanks& sum_over_ranks);

// Task clip. Multiplies this rank's gradients by max_norm / (norm + 1e-6), as PyTorch does, unless
// that would make them longer.
void clip(RankGradients& gradients, double norm, double max_norm);

inline constexpr std::size_t norm_block = 64;

// Task same_bits. Returns the norm of the model's `count` gradients, in the same bits for any
// number of ranks. chunk[i] is gradient begin + i, and `begin` a multiple of norm_block. Every rank
// calls sum_over_ranks once, with at most one number per block of norm_block gradients of the
// model.
double norm_by_blocks(const std::vector<float>& chunk, std::size_t begin, std::size_t count,
                      const SumOverRanks& sum_over_ranks);

}  // namespace ddp
