#pragma once
// The contract of the exercise bfloat16_gradients: sums of gradients in bfloat16, which has 8
// significant bits where a float has 24.
#include <cuda_bf16.h>

#include <cstddef>

#include "common/gpu/gpu.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// All arrays have n elements, 0 or more, and lie in device memory. The host only enqueues work
// on `stream`, and does not wait.

// Task into_float. Enqueues sums[i] += scale * gradients[i]. If `accumulate` is false, `sums` is
// not initialised yet, and is overwritten.
void accumulate_in_float(std::size_t n, const __nv_bfloat16* gradients, float scale,
                         bool accumulate, float* sums, Stream& stream);

// Task standstill. Returns the computed sum divided by the right sum, when the gradients of
// `micro_batches` micro-batches, one or more, are all 1 and are added one after the other,
// beginning at 0. The type's fraction has `fraction_bits` bits (bfloat16: 7; half: 10; float: 23;
// double: 52), and every addition rounds to the nearest number of the type.
double share_that_arrives(int fraction_bits, std::size_t micro_batches);

// Task two_parts. Does the same as into_float without floats in memory. The sum is
// sums[i] + lost[i]: sums[i] is the bfloat16 nearest to it, and lost[i] is what that rounding lost,
// also as a bfloat16. If `accumulate` is false, neither is initialised yet.
void accumulate_in_two_parts(std::size_t n, const __nv_bfloat16* gradients, float scale,
                             bool accumulate, __nv_bfloat16* sums, __nv_bfloat16* lost,
                             Stream& stream);

}  // namespace ddp
