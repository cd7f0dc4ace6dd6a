#pragma once
// Exercise scan: the sum before every element, and a use of it.
//
//     counts   3   1   4   0   5        values, threshold 2   1   -3   2   0   4
//     starts   0   3   4   8   8        kept values               -3   2       4
//                                       their places               1   2       4     count 3
//
// You may call: launch(stream, {blocks, threads, bytes of shared memory}, kernel, arguments...); in
// a kernel dynamic_shared<T>(), __syncthreads(), __shfl_up_sync(), fabsf().
// The check also tries: no counts, blocks of any number of threads from 1 to 1024, more blocks than
// threads in a block.
#include "common/gpu/gpu.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Task prefix_sums. Enqueues starts[i] = counts[0] + ... + counts[i - 1] for all i < n, by one
// block of `block` threads.
void starts_by_one_block(const int* counts, int n, int block, int* starts, Stream& stream);

// Task over_blocks. Does the same by `blocks` blocks of `block` threads. `scratch` has room for
// `blocks` elements.
void starts_by_many_blocks(const int* counts, int n, int blocks, int block, int* scratch,
                           int* starts, Stream& stream);

// The output of compact(). `values` and `places` have room for n elements, `count` for one.
struct Compact {
    float* values;
    int* places;
    int* count;
};

// Task compact. Keeps each values[i] with |values[i]| >= threshold and its place i, in the order of
// their places, and counts them. n is 1 or more. `scratch` has room for 2 n + blocks elements.
void compact(const float* values, int n, float threshold, int blocks, int block, int* scratch,
             Compact result, Stream& stream);

}  // namespace ddp
