#pragma once
// Exercise narrow_wire: an all-reduce of floats that sends only half of the bytes. The ranks send
// bfloat16 and add in float; every summand is rounded once, and so is the sum.
//
//     the ranks bring 256, 1 and 1: the sum is 258 (added in bfloat16 it would stay 256)
//
// You may call: __float2bfloat16(), __bfloat162float(), launch(), grid_for(), grid_range(),
// element_type<__nv_bfloat16>(), launch_collective(), shape_of_transfer(), all_gather(); in the
// kernel begin_collective(), handshake_all(), fetch_over_link(), view.data_of(), offsets_of(),
// end_block(); message.alpha_s, message.beta_s_per_byte.
// The check also tries: one rank, up to eight; no elements, and numbers that do not divide.
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

// All-reduces data[0 .. count) in place. `narrow` is scratch memory in this rank's arena: one chunk
// of equal_chunk(count, ranks) elements for each rank.
//
// Task one_rounding: the sums are rounded as above.
// Task same_bits: they have the same bits on all ranks, for every count.
void narrow_all_reduce(Peers& peers, float* data, std::size_t count, __nv_bfloat16* narrow,
                       Stream& stream);

// Task seconds. Returns the seconds that it takes for floats of `bytes` bytes. A rank can send to
// one rank and receive from another at the same time.
double narrow_all_reduce_seconds(const CostModel& message, int ranks, std::size_t bytes);

}  // namespace ddp
