// The exercise argmax: where is the largest value? Read exercises/02_kernels/README.md first.
#include "exercises/02_kernels/argmax.hpp"

#include <limits>

namespace ddp {
namespace {

// Your kernels go here. They can use everything of 02_kernels: __shared__ arrays,
// dynamic_shared<T>(), __syncthreads(), __shfl_down_sync().

}  // namespace

void argmax_by_one_block(const float* values, int n, int block, Largest* result, Stream& stream) {
    // Launch one block of `block` threads, as the chapter does:
    // launch(stream, {grid, block, bytes of dynamic shared memory}, kernel, arguments...);
    throw NotImplemented("one_block");
}

void argmax_by_many_blocks(const float* values, int n, int blocks, int block, Largest* scratch,
                           Largest* result, Stream& stream) {
    // Every block writes its largest element to `scratch`. A second launch reduces these to one.
    throw NotImplemented("many_blocks");
}

}  // namespace ddp
