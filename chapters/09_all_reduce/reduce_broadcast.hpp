#pragma once
// All-reduce by what the chapters before have: a reduce to rank 0, and a broadcast from there. Up a
// tree and down a tree: 2 log2(N) steps, each of them with all of the data.
#include <cstddef>
#include <string>

#include "02_kernels/reduction.hpp"
#include "06_messages/peers.hpp"

namespace ddp {

// As two_shot_all_reduce, but the sums are in the order of the tree: other bits, which are again
// the same on all ranks.
template <class T>
void reduce_broadcast_all_reduce(Peers& peers, const T* input, T* output, std::size_t count,
                                 ReduceOp op, Stream& stream, const std::string& name = "");

}  // namespace ddp
