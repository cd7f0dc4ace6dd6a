// The exercise scan: the sum before every element. Read exercises/02_kernels/README.md first.
#include "exercises/02_kernels/scan.hpp"

namespace ddp {
namespace {

// Your kernels go here. Inside of them everything of chapter 02 is at hand: __shared__ arrays,
// dynamic_shared<T>(), __syncthreads(), __shfl_up_sync().

}  // namespace

void starts_by_one_block(const int* counts, int n, int block, int* starts, Stream& stream) {
    // launch(stream, {grid, block, bytes of dynamic shared memory}, kernel, arguments...);
    throw NotImplemented("prefix_sums");
}

void starts_by_many_blocks(const int* counts, int n, int blocks, int block, int* scratch,
                           int* starts, Stream& stream) {
    // A block cannot know the sum before its piece until the earlier pieces have been added up.
    throw NotImplemented("over_blocks");
}

void compact(const float* values, int n, float threshold, int blocks, int block, int* scratch,
             Compact result, Stream& stream) {
    // Count 1 for each value that stays and 0 for each that goes: what do their starts say?
    throw NotImplemented("compact");
}

}  // namespace ddp
