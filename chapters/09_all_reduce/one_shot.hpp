#pragma once
// One-shot all-reduce, for short messages: every rank reads all of everyone's data and sums all of
// it. That is N - 1 times the data instead of 2 (N - 1) / N, but the ranks meet only once.
#include <cstddef>
#include <string>

#include "02_kernels/reduction.hpp"
#include "06_messages/peers.hpp"

namespace ddp {

// As two_shot_all_reduce, with the same bits, for any device memory, and for up to
// Peers::most_staged bytes; throws std::invalid_argument for more.
template <class T>
void one_shot_all_reduce(Peers& peers, const T* input, T* output, std::size_t count, ReduceOp op,
                         Stream& stream, const std::string& name = "");

}  // namespace ddp
