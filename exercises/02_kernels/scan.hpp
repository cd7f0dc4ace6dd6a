#pragma once
// The contract of the exercise scan: not one sum, but the sum before every element; and what that
// is good for.
#include "common/gpu/gpu.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// All pointers are device memory. No sum exceeds an int. `block`, the number of threads in a block,
// is any number from 1 to 1024: it need not be a power of two.

// Task prefix_sums. Enqueues starts[i] = counts[0] + counts[1] + ... + counts[i - 1], so starts[0]
// is 0, for i from 0 to n - 1, by ONE block of `block` threads. n is 0 or more; it may be smaller
// or larger than `block`.
void starts_by_one_block(const int* counts, int n, int block, int* starts, Stream& stream);

// Task over_blocks. The same by `blocks` blocks, 1 or more. `scratch` is device memory for `blocks`
// elements, of this call alone until it is done.
void starts_by_many_blocks(const int* counts, int n, int blocks, int block, int* scratch,
                           int* starts, Stream& stream);

// The output of compact(): the values that it keeps, their places in the array, and how many they
// are. `values` and `places` hold n elements, `count` holds one.
struct Compact {
    float* values;
    int* places;
    int* count;
};

// Task compact. Keeps those of the n values (1 or more) that are not smaller than `threshold` in
// size, and leaves out the others: values[i] goes if |values[i]| < threshold. NaN stays, since what
// has gone wrong must not be overlooked. In the order of their places. By `blocks` blocks of
// `block` threads; `scratch` holds 2 n + blocks elements, of this call alone until it is done.
void compact(const float* values, int n, float threshold, int blocks, int block, int* scratch,
             Compact result, Stream& stream);

}  // namespace ddp
