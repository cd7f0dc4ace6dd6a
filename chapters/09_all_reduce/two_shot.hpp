#pragma once
// Two-shot all-reduce: every rank sums one chunk, reading it from all ranks, and writes the result
// to all ranks. Two meetings, and each element crosses to another rank once on each of its ways:
// 2 (N - 1) / N of the data, as in the ring, without the ring's 2 (N - 1) steps one after the
// other.
#include <cstddef>
#include <string>

#include "02_kernels/reduction.hpp"
#include "06_messages/peers.hpp"
#include "07_broadcast/broadcast.hpp"

namespace ddp {

// `output` on every rank becomes the sum (or average, maximum, minimum) of all ranks' `input`, of
// `count` elements each. Both lie in the ranks' arenas; they may be the same, and must not overlap
// otherwise. The order of the sums is chunk.hpp's; an average divides the sum. T is float, double,
// int, __half or __nv_bfloat16; every partial sum is a T. Throws as Peers::send does.
template <class T>
void two_shot_all_reduce(Peers& peers, const T* input, T* output, std::size_t count, ReduceOp op,
                         Stream& stream, const std::string& name = "");

// `input` has `count` elements for each rank, by rank; `output` becomes the sum of those for this
// rank, over all ranks, from the next rank round to this one. `output` may lie within `input`,
// where this rank's elements are.
template <class T>
void reduce_scatter(Peers& peers, const T* input, T* output, std::size_t count, ReduceOp op,
                    Stream& stream, const std::string& name = "");

// `output` becomes every rank's `input`, by rank. `input` may lie within `output`, where this
// rank's elements go.
void all_gather(Peers& peers, const AnyArray& input, void* output, Stream& stream,
                const std::string& name = "");

}  // namespace ddp
