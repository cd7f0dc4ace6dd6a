// The exercise scan: the sum before every element. Read exercises/02_kernels/README.md first.
#include "exercises/02_kernels/scan.hpp"

namespace ddp {
namespace {

// Your kernels go here. They can use everything of 02_kernels: __shared__ arrays,
// dynamic_shared<T>(), __syncthreads(), __shfl_up_sync().

}  // namespace

void starts_by_one_block(const int* counts, int n, int block, int* starts, Stream& stream) {
    // launch(stream, {grid, block, bytes of dynamic shared memory}, kernel, arguments...);
    throw NotImplemented("prefix_sums");
}

void starts_by_many_blocks(const int* counts, int n, int blocks, int block, int* scratch,
                           int* starts, Stream& stream) {
    // A block cannot know the sum before its chunk until the earlier chunks have been added up.
    throw NotImplemented("over_blocks");
}

void compact(const float* values, int n, float threshold, int blocks, int block, int* scratch,
             Compact result, Stream& stream) {
    // Count 1 for each value that is kept and 0 for the others: what do their starts tell you?
    throw NotImplemented("compact");
}

}  // namespace ddp
