#pragma once
// Exercise first_kernel: three kernels of a few lines each.
//
//     10 elements in blocks of 4 threads
//
//     element       0 1 2 3   4 5 6 7   8 9
//     threadIdx.x   0 1 2 3   0 1 2 3   0 1 2 3     the last two have nothing to do
//     blockIdx.x       0         1         2
//
// Each function makes one launch. The thread that computes element i also writes down who it is:
// places[i] = {blockIdx.x, threadIdx.x}.
// You may call: launch(stream, {blocks, threads}, kernel, arguments...).
// The check also tries: one element, one block, more threads than elements.
#include "exercises/not_implemented.hpp"
#include "exercises/support/remembering_stream.hpp"

namespace ddp {

// A thread's block, and its place in that block.
struct Place {
    unsigned int block;
    unsigned int thread;
};

// Task whole_blocks. Enqueues values[i] *= factor for all i < n, one thread for each element, in
// blocks of `threads` threads. n is a multiple of `threads`.
void scale(unsigned int n, unsigned int threads, float factor, float* values, Place* places,
           RememberingStream& stream);

// Task last_block. Enqueues y[i] += a * x[i] for all i < n, one thread for each element, in as few
// blocks of `threads` threads as are needed.
void saxpy(unsigned int n, unsigned int threads, float a, const float* x, float* y, Place* places,
           RememberingStream& stream);

// Task few_threads. Enqueues result[i] += values[i + 1] - values[i] for all i < n - 1, by `blocks`
// blocks of `threads` threads. With G threads in all, thread g of the grid computes the elements
// g, g + G, g + 2 G and so on.
void add_differences(unsigned int n, unsigned int blocks, unsigned int threads, const float* values,
                     float* result, Place* places, RememberingStream& stream);

}  // namespace ddp
