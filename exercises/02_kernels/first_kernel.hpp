#pragma once
// The contract of the exercise first_kernel: three kernels of a few lines each.
//
// All arrays are device memory. Each function makes ONE launch and does not wait for it. Whoever
// computes element i also writes where it is to places[i]: {blockIdx.x, threadIdx.x}.
#include <vector>

#include "common/gpu/gpu.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// A thread's block, and its place in that block.
struct Place {
    unsigned int block;
    unsigned int thread;
};

// A stream that remembers the shapes of its launches for the check, and how often somebody waited.
// Launch on it as on any stream: launch(stream, {blocks, threads}, kernel, arguments...).
class RememberingStream : public Stream {
  public:
    void synchronize(Where where = Where::current()) {
        waits++;
        Stream::synchronize(where);
    }
    std::vector<LaunchShape> launches;
    int waits = 0;
};
template <class... Parameters, class... Arguments>
void launch(RememberingStream& stream, const LaunchShape& shape, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
    stream.launches.push_back(shape);
    launch(static_cast<cudaStream_t>(stream), shape, kernel,
           static_cast<Arguments&&>(arguments)...);
}

// Task whole_blocks. Enqueues values[i] *= factor for all i < n, one thread for each element, in
// blocks of `threads` threads. n is a multiple of `threads`, and not 0.
void scale(unsigned int n, unsigned int threads, float factor, float* values, Place* places,
           RememberingStream& stream);

// Task last_block. Enqueues y[i] += a * x[i] for all i < n, one thread for each element, in blocks
// of `threads` threads, and in no more blocks than are needed. n is 1 or more.
void saxpy(unsigned int n, unsigned int threads, float a, const float* x, float* y, Place* places,
           RememberingStream& stream);

// Task few_threads. Enqueues result[i] += values[i + 1] - values[i] for all i < n - 1, by `blocks`
// blocks of `threads` threads, which may be fewer than there are elements, or more. With G threads
// in all, thread g of the grid takes the elements g, g + G, g + 2 G and so on. n is 1 or more.
void add_differences(unsigned int n, unsigned int blocks, unsigned int threads, const float* values,
                     float* result, Place* places, RememberingStream& stream);

}  // namespace ddp
