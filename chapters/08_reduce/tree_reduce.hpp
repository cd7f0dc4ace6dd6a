#pragma once
// Reduce across ranks: the tree of a broadcast the other way round. In log2(N) steps the ranks'
// arrays become one, at the root.
#include <cstddef>
#include <string>

#include "02_kernels/reduction.hpp"
#include "06_messages/peers.hpp"
#include "06_messages/point_to_point.hpp"

namespace ddp {

// Makes the root's `output` the sum (or average, maximum, minimum) of all ranks' `input`, of
// `count` elements each; ignores the other ranks' output. Both lie in the ranks' arenas; they may
// be the same, and must not overlap otherwise. T is float, double, int, __half or __nv_bfloat16.
//
// Neighbours are added first, then neighbouring pairs, then neighbouring groups of four, each time
// the lower ranks' to the left: ((x0 + x1) + (x2 + x3)) + ((x4 + x5) + x6). So the bits depend on
// the number of ranks, and on nothing else: not on the root, the size, or the kind of device. Every
// sum is rounded to T; an average is divided by the number of ranks at the end.
//
// Enqueues one kernel per rank on `stream`; the host doesn't wait. Throws std::invalid_argument for
// a root that does not exist, data outside the arena, or ranks on several nodes.
void tree_reduce(Peers& peers, const Call& call, Stream& stream);
// Reduces in slices of this size, the same on every rank: a multiple of 128 bytes, at most a slot.
void tree_reduce(Peers& peers, const Call& call, Stream& stream, std::size_t slice_bytes);

template <class T>
void tree_reduce(Peers& peers, const T* input, T* output, std::size_t count, ReduceOp op, int root,
                 Stream& stream, const std::string& name = "") {
    tree_reduce(peers,
                Call{.operation = "reduce",
                     .kind = OperationKind::reduce,
                     .type = element_type<T>(),
                     .count = count,
                     .input = input,
                     .output = output,
                     .name = name,
                     .peer = root,
                     .op = op},
                stream);
}

// Returns the order of the additions: "(x0+x1)+x2" for three ranks.
std::string tree_order(int ranks);

// Returns the predicted seconds: the root receives log2(N), rounded up, times all bytes, in slices.
double tree_reduce_seconds(const CostModel& message, int ranks, std::size_t bytes);

}  // namespace ddp
