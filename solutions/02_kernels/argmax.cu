// The exercise argmax: where is the largest value? Read exercises/02_kernels/README.md first.
#include "exercises/02_kernels/argmax.hpp"

#include <limits>

namespace ddp {
namespace {

// stub
//: Your kernels go here. They can use everything of 02_kernels: __shared__ arrays,
//: dynamic_shared<T>(), __syncthreads(), __shfl_down_sync().
// Returns an element that loses against every other, because there is no higher index.
__device__ constexpr Largest nothing() {
    return {-std::numeric_limits<float>::infinity(), std::numeric_limits<int>::max()};
}

// Returns the larger of two elements, as the contract defines it.
__device__ Largest larger(Largest a, Largest b) {
    const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
    if (a_is_nan != b_is_nan)
        return a_is_nan ? a : b;
    if (a_is_nan || a.value == b.value)
        return a.index < b.index ? a : b;
    return a.value > b.value ? a : b;
}

// Returns the largest of the elements that a block's threads pass. All threads of the block call
// it. With an odd number of live threads the middle one has no partner and keeps its element.
__device__ Largest largest_of_block(Largest mine) {
    auto* shared = dynamic_shared<Largest>();
    const unsigned int thread = threadIdx.x;
    shared[thread] = mine;
    __syncthreads();
    for (unsigned int live = blockDim.x; live > 1;) {
        const unsigned int half = (live + 1) / 2;
        if (thread + half < live)
            shared[thread] = larger(shared[thread], shared[thread + half]);
        live = half;
        __syncthreads();
    }
    return shared[0];
}

__global__ void largest_of_values(const float* values, int n, Largest* results) {
    Largest mine = nothing();
    for (std::size_t i : grid_range(static_cast<std::size_t>(n)))
        mine = larger(mine, {values[i], static_cast<int>(i)});
    mine = largest_of_block(mine);
    if (threadIdx.x == 0)
        results[blockIdx.x] = mine;
}

// Reduces the candidates of the first pass, which contain their index. Runs in one block.
__global__ void largest_of_candidates(const Largest* candidates, int n, Largest* result) {
    Largest mine = nothing();
    for (std::size_t i : grid_range(static_cast<std::size_t>(n)))
        mine = larger(mine, candidates[i]);
    mine = largest_of_block(mine);
    if (threadIdx.x == 0)
        *result = mine;
}

LaunchShape shape_of(int blocks, int block) {
    const auto threads = static_cast<unsigned int>(block);
    return {dim3(static_cast<unsigned int>(blocks)), dim3(threads), threads * sizeof(Largest)};
}
// end stub

}  // namespace

void argmax_by_one_block(const float* values, int n, int block, Largest* result, Stream& stream) {
    // stub: one_block
    //: Launch one block of `block` threads, as the chapter does:
    //: launch(stream, {grid, block, bytes of dynamic shared memory}, kernel, arguments...);
    launch(stream, shape_of(1, block), largest_of_values, values, n, result);
    // end stub
}

void argmax_by_many_blocks(const float* values, int n, int blocks, int block, Largest* scratch,
                           Largest* result, Stream& stream) {
    // stub: many_blocks
    //: Every block writes its largest element to `scratch`. A second launch reduces these to one.
    launch(stream, shape_of(blocks, block), largest_of_values, values, n, scratch);
    launch(stream, shape_of(1, block), largest_of_candidates, scratch, blocks, result);
    // end stub
}

}  // namespace ddp
