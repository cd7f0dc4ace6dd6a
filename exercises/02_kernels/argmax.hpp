#pragma once
// The contract of the exercise argmax: not the largest value alone, but also where it stands.
//
// Which of two is the larger one, for all functions here:
// - the one with the larger value;
// - of two equal values, the one with the lower index;
// - NaN is larger than every number: what has gone wrong must not be overlooked. Of two NaN, again
//   the one with the lower index.
#include <cstddef>

#include "common/gpu/gpu.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

struct Largest {
    float value;
    int index;
};

// Task one_block. Enqueues *result = the largest of values[0], ..., values[n - 1] and its index, by
// ONE block of `block` threads. n is 1 or more, `block` is any number from 1 to 1024: neither need
// be a power of two, and either may be the larger one. Both pointers are device memory.
void argmax_by_one_block(const float* values, int n, int block, Largest* result, Stream& stream);

// Task many_blocks. The same by `blocks` blocks of `block` threads, where `blocks` is 1 or more.
// `scratch` is device memory for `blocks` elements, of this call alone until it is done.
void argmax_by_many_blocks(const float* values, int n, int blocks, int block, Largest* scratch,
                           Largest* result, Stream& stream);

}  // namespace ddp
