#pragma once
// The contract of the exercise bfloat16_gradients: micro-batches whose gradients come in bfloat16,
// which has 8 bits where a float has 24, and the sums that are made of them.
#include <cuda_bf16.h>

#include <cstddef>

#include "common/gpu/gpu.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// All arrays have n elements, n may be 0, and lie in device memory.

// Task into_float. Enqueues sums[i] += scale * gradients[i]. Where `accumulate` is false, `sums`
// holds nothing yet: it is overwritten.
void accumulate_in_float(std::size_t n, const __nv_bfloat16* gradients, float scale,
                         bool accumulate, float* sums, Stream& stream);

// Task standstill. The gradients of `micro_batches` micro-batches are all 1. They are added one
// after the other, beginning at 0, by numbers whose fraction has `fraction_bits` bits, and every
// addition rounds to the nearest of these numbers (bfloat16: 7; half: 10; float: 23). Which share
// of the right sum comes out? 1 is all of it.
double share_that_arrives(int fraction_bits, std::size_t micro_batches);

// Task two_parts. The same as into_float, but nothing is a float in memory: the sum is
// sums[i] + lost[i], where sums[i] is the bfloat16 nearest to it, and lost[i] is what was lost by
// that rounding, as a bfloat16, too. Where `accumulate` is false, both hold nothing yet.
void accumulate_in_two_parts(std::size_t n, const __nv_bfloat16* gradients, float scale,
                             bool accumulate, __nv_bfloat16* sums, __nv_bfloat16* lost,
                             Stream& stream);

}  // namespace ddp
