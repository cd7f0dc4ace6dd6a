#pragma once
// Exercise bfloat16_gradients: sums of gradients in bfloat16, which has 8 significant bits where a
// float has 24.
//
//     in float                                     128 + 0.5 * 3 = 129.5
//     in bfloat16, whose neighbours are 1 apart    128 + 0.5 * 3 = 130
//     in two bfloat16, sum and lost                128 + 0.5 * 3 = 130 + -0.5
//
// You may call: launch(stream, grid_for(n), kernel, arguments...); in a kernel grid_range(n),
// __bfloat162float(x) and __float2bfloat16(x); std::ldexp().
#include <cuda_bf16.h>

#include <cstddef>

#include "common/gpu/gpu.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Task into_float. Enqueues sums[i] += scale * gradients[i] for all i < n. If `accumulate` is
// false, `sums` is not initialised yet, and is overwritten.
void accumulate_in_float(std::size_t n, const __nv_bfloat16* gradients, float scale,
                         bool accumulate, float* sums, Stream& stream);

// Task standstill. Returns the computed sum divided by the right sum, when `micro_batches` ones are
// added one after the other. The type's fraction has `fraction_bits` bits (bfloat16: 7; half: 10;
// float: 23), and every addition rounds to the nearest number of the type.
double share_that_arrives(int fraction_bits, std::size_t micro_batches);

// Task two_parts. Does the same as into_float without floats in memory. The sum is
// sums[i] + lost[i]: sums[i] is the bfloat16 nearest to it, and lost[i] is what that rounding lost,
// also as a bfloat16. If `accumulate` is false, neither is initialised yet.
void accumulate_in_two_parts(std::size_t n, const __nv_bfloat16* gradients, float scale,
                             bool accumulate, __nv_bfloat16* sums, __nv_bfloat16* lost,
                             Stream& stream);

}  // namespace ddp
