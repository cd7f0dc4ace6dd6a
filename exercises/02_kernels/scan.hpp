#pragma once
// The contract of the exercise scan: the sum before every element, and a use of it.
#include "common/gpu/gpu.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// All pointers are device memory. No sum exceeds an int. `block`, the number of threads in a block,
// is any number from 1 to 1024: it need not be a power of two.

// Task prefix_sums. Enqueues starts[i] = counts[0] + counts[1] + ... + counts[i - 1], so starts[0]
// is 0, for i from 0 to n - 1, by ONE block of `block` threads. n is 0 or more; it may be smaller
// or larger than `block`.
void starts_by_one_block(const int* counts, int n, int block, int* starts, Stream& stream);

// Task over_blocks. Does the same by `blocks` blocks, 1 or more, of `block` threads. `scratch` is
// device memory for `blocks` elements, used by this call alone until it is done.
void starts_by_many_blocks(const int* counts, int n, int blocks, int block, int* scratch,
                           int* starts, Stream& stream);

// The output of compact(): the values that it keeps, their places in the array, and their number.
// `values` and `places` have room for n elements, `count` for one.
struct Compact {
    float* values;
    int* places;
    int* count;
};

// Task compact. Keeps each values[i] with |values[i]| >= threshold, in the order of their places,
// and drops the others. n is 1 or more. Uses `blocks` blocks of `block` threads.
// `scratch` holds 2 n + blocks elements, used by this call alone until it is done.
void compact(const float* values, int n, float threshold, int blocks, int block, int* scratch,
             Compact result, Stream& stream);

}  // namespace ddp
