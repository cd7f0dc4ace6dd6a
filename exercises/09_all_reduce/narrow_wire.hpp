#pragma once
// The contract of the exercise narrow_wire: an all-reduce of floats of which only half of the bytes
// travel.
#include <cuda_bf16.h>

#include <cstddef>

#include "06_messages/peers.hpp"
#include "06_messages/point_to_point.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// So many elements are in a chunk if all ranks' are to be as long: the last ones then have less in
// them, or nothing.
inline std::size_t equal_chunk(std::size_t count, std::size_t ranks) {
    return (count + ranks - 1) / ranks;
}

// Enqueues on `stream` that data[i] becomes the sum of all ranks' data[i], for i = 0, ...,
// count - 1. What goes from rank to rank is bfloat16, and what is added is float: every summand is
// rounded once, and so is the sum. `narrow` is memory to work with: one chunk for each rank, of
// equal_chunk(count, ranks) elements, in this rank's arena, not initialised. `data` is any device
// memory. Any `count`, 0 too; any number of ranks. The host does not wait.
//
// Task one_rounding: data[i] is bfloat16(bfloat16(summand) + ... + bfloat16(summand)).
// Task same_bits: it is the same number on all ranks, to the bit, for every count.
void narrow_all_reduce(Peers& peers, float* data, std::size_t count, __nv_bfloat16* narrow,
                       Stream& stream);

// Task seconds. How many seconds it takes, by what a message takes, if `bytes` are those of the
// floats: a rank can send to one other rank and receive from one other at the same time.
double narrow_all_reduce_seconds(const CostModel& message, int ranks, std::size_t bytes);

}  // namespace ddp
