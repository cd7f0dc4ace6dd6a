// The exercise first_kernel: three kernels. Read exercises/02_kernels/README.md first.
#include "exercises/02_kernels/first_kernel.hpp"

namespace ddp {
namespace {

// Your kernels go here, like this:
//
// __global__ void my_kernel(unsigned int n, float* values, Place* places) {
//     ...
//     places[i] = {blockIdx.x, threadIdx.x};
// }

}  // namespace

void scale(unsigned int n, unsigned int threads, float factor, float* values, Place* places,
           RememberingStream& stream) {
    // launch(stream, {blocks, threads}, kernel, arguments...);
    throw NotImplemented("whole_blocks");
}

void saxpy(unsigned int n, unsigned int threads, float a, const float* x, float* y, Place* places,
           RememberingStream& stream) {
    // How many blocks do 10 elements need, in blocks of 4 threads?
    throw NotImplemented("last_block");
}

void add_differences(unsigned int n, unsigned int blocks, unsigned int threads, const float* values,
                     float* result, Place* places, RememberingStream& stream) {
    // Here the launch is easy: the number of blocks is given. The kernel needs a loop.
    throw NotImplemented("few_threads");
}

}  // namespace ddp
