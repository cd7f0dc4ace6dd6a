#pragma once
// Exercise argmax: the largest value of an array, and its index.
//
//     values   2 7 1 8 3 5        result   {8, 3}
//
// You may call: launch(stream, {blocks, threads, bytes of shared memory}, kernel, arguments...); in
// a kernel dynamic_shared<T>(), __syncthreads() and grid_range(n).
// The check also tries: blocks of any number of threads from 1 to 1024, a single value, fewer
// values than threads, more blocks than threads.
#include <cstddef>

#include "common/gpu/gpu.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// A value, and its index in the array.
struct Largest {
    float value;
    int index;
};

// Task one_block. Enqueues *result = the largest of values[0 .. n) by one block of `block` threads.
void argmax_by_one_block(const float* values, int n, int block, Largest* result, Stream& stream);

// Task many_blocks. Does the same by `blocks` blocks of `block` threads, which share the values.
// `scratch` has room for `blocks` elements.
void argmax_by_many_blocks(const float* values, int n, int blocks, int block, Largest* scratch,
                           Largest* result, Stream& stream);

// Task ties_and_nan. Both functions agree on what is not obvious: of equal values the one with the
// lowest index wins, and NaN wins against every number, so that it isn't overlooked.

}  // namespace ddp
