// A mutant: its tree halves the threads, and loses one of an odd number.
// says: does your tree lose the middle one
#include "exercises/06_reduce/argmax.hpp"

#include <limits>

namespace ddp {
namespace {

__device__ constexpr Largest nothing() {
    return {-std::numeric_limits<float>::infinity(), std::numeric_limits<int>::max()};
}

__device__ Largest larger(Largest a, Largest b) {
    const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
    if (a_is_nan != b_is_nan)
        return a_is_nan ? a : b;
    if (a_is_nan || a.value == b.value)
        return a.index < b.index ? a : b;
    return a.value > b.value ? a : b;
}

__device__ Largest largest_of_block(Largest mine) {
    auto* shared = dynamic_shared<Largest>();
    const unsigned int thread = threadIdx.x;
    shared[thread] = mine;
    __syncthreads();
    for (unsigned int half = blockDim.x / 2; half > 0; half /= 2) {
        if (thread < half)
            shared[thread] = larger(shared[thread], shared[thread + half]);
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

}  // namespace

void argmax_by_one_block(const float* values, int n, int block, Largest* result, Stream& stream) {
    launch(stream, shape_of(1, block), largest_of_values, values, n, result);
}

void argmax_by_many_blocks(const float* values, int n, int blocks, int block, Largest* scratch,
                           Largest* result, Stream& stream) {
    launch(stream, shape_of(blocks, block), largest_of_values, values, n, scratch);
    launch(stream, shape_of(1, block), largest_of_candidates, scratch, blocks, result);
}

}  // namespace ddp
