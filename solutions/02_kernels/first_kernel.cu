// The exercise first_kernel: three kernels. Read exercises/02_kernels/README.md first.
#include "exercises/02_kernels/first_kernel.hpp"

namespace ddp {
namespace {

// stub
//: Your kernels go here, like this:
//:
//: __global__ void my_kernel(unsigned int n, float* values, Place* places) {
//:     ...
//:     places[i] = {blockIdx.x, threadIdx.x};
//: }
__global__ void scale_elements(float factor, float* values, Place* places) {
    const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    values[i] *= factor;
    places[i] = {blockIdx.x, threadIdx.x};
}

__global__ void add_scaled_elements(unsigned int n, float a, const float* x, float* y,
                                    Place* places) {
    const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        y[i] += a * x[i];
        places[i] = {blockIdx.x, threadIdx.x};
    }
}

// Adds the differences of this thread: every G-th one, for G threads in the grid.
__global__ void add_differences_of_thread(unsigned int n, const float* values, float* result,
                                          Place* places) {
    const unsigned int first = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned int step = gridDim.x * blockDim.x;
    for (unsigned int i = first; i + 1 < n; i += step) {
        result[i] += values[i + 1] - values[i];
        places[i] = {blockIdx.x, threadIdx.x};
    }
}
// end stub

}  // namespace

void scale(unsigned int n, unsigned int threads, float factor, float* values, Place* places,
           RememberingStream& stream) {
    // stub: whole_blocks
    //: launch(stream, {blocks, threads}, kernel, arguments...);
    const unsigned int blocks = n / threads;
    launch(stream, {blocks, threads}, scale_elements, factor, values, places);
    // end stub
}

void saxpy(unsigned int n, unsigned int threads, float a, const float* x, float* y, Place* places,
           RememberingStream& stream) {
    // stub: last_block
    //: How many blocks do 10 elements need, in blocks of 4 threads?
    const unsigned int blocks = (n + threads - 1) / threads;
    launch(stream, {blocks, threads}, add_scaled_elements, n, a, x, y, places);
    // end stub
}

void add_differences(unsigned int n, unsigned int blocks, unsigned int threads, const float* values,
                     float* result, Place* places, RememberingStream& stream) {
    // stub: few_threads
    //: Here the launch is easy: the number of blocks is given. The kernel needs a loop.
    launch(stream, {blocks, threads}, add_differences_of_thread, n, values, result, places);
    // end stub
}

}  // namespace ddp
