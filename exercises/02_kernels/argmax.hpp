#pragma once
// The contract of the exercise argmax: find the largest value and where it is.
//
// For all functions here, the larger of two elements is
// - the one with the larger value;
// - the one with the lower index, if the values are equal;
// - NaN, if the other is a number, so that an invalid value is not overlooked; of two NaN, the one
//   with the lower index.
#include <cstddef>

#include "common/gpu/gpu.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// A value, and its index in the array.
struct Largest {
    float value;
    int index;
};

// Task one_block. Enqueues *result = the largest of values[0], ..., values[n - 1] and its index, by
// ONE block of `block` threads. n is 1 or more, `block` from 1 to 1024: neither need be a power of
// two, and either may be the larger one. Both pointers are device memory.
void argmax_by_one_block(const float* values, int n, int block, Largest* result, Stream& stream);

// Task many_blocks. Does the same by `blocks` blocks of `block` threads, which share the values:
// each block looks at about n / blocks of them. `scratch` is device memory for `blocks` elements,
// used by this call alone until it is done.
void argmax_by_many_blocks(const float* values, int n, int blocks, int block, Largest* scratch,
                           Largest* result, Stream& stream);

}  // namespace ddp
