#pragma once
// The contract of the exercise narrow_wire: an all-reduce of floats that sends only half of the
// bytes.
#include <cuda_bf16.h>

#include <cstddef>

#include "06_messages/peers.hpp"
#include "06_messages/point_to_point.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Returns the number of elements of a chunk if all ranks' chunks have the same length. The last
// chunks then hold fewer elements of the array, or none.
inline std::size_t equal_chunk(std::size_t count, std::size_t ranks) {
    return (count + ranks - 1) / ranks;
}

// Enqueues on `stream` an all-reduce in place: data[i] becomes the sum of all ranks' data[i], for
// i = 0, ..., count - 1. Ranks send bfloat16 and add in float: every summand is rounded once, and
// so is the sum. `narrow` is scratch memory in this rank's arena, not initialised: one chunk of
// equal_chunk(count, ranks) elements for each rank. `data` is any device memory. `count` may be
// anything, including 0, and so may the number of ranks. The host does not wait.
//
// Task one_rounding: data[i] is bfloat16(bfloat16(summand) + ... + bfloat16(summand)); the sign of
// a 0 does not matter. Task same_bits: data[i] has the same bits on all ranks, for every count.
void narrow_all_reduce(Peers& peers, float* data, std::size_t count, __nv_bfloat16* narrow,
                       Stream& stream);

// Task seconds. Returns the seconds that it takes, where `bytes` are those of the floats, a message
// of n bytes takes message.seconds(n), and a rank can send to one rank and receive from another at
// the same time.
double narrow_all_reduce_seconds(const CostModel& message, int ranks, std::size_t bytes);

}  // namespace ddp
