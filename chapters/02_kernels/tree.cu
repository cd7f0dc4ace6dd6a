// The sum of a block in shared memory, `sequential`: eight numbers, three steps.
//
//     thread        0    1    2    3    4    5    6    7
//     values        1    2    3    4    5    6    7    8      each thread brings one
//     ------------------------------------------------------- barrier
//     step 1        6    8   10   12    .    .    .    .      += the value four places on
//     ------------------------------------------------------- barrier
//     step 2       16   20    .    .    .    .    .    .      += two places on
//     ------------------------------------------------------- barrier
//     step 3       36    .    .    .    .    .    .    .      += one place on
//
// At a barrier every thread waits until all threads of the block have come.
#include "02_kernels/tree.hpp"

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// Adds up blockDim.x values: the first half of the threads adds the values of the second half, and
// so on. A row of `steps` gets what every thread has after each step.
template <bool with_barriers>
__global__ void sum_by_halves(const int* values, int* sum, TreeCell* steps) {
    int* partial = dynamic_shared<int>();  // one place for each thread of the block
    const unsigned int thread = threadIdx.x;
    partial[thread] = values[thread];
    steps[thread] = {partial[thread], false};
    __syncthreads();
    for (unsigned int half = blockDim.x / 2; half > 0; half /= 2) {
        if (thread < half)
            partial[thread] += partial[thread + half];
        steps += blockDim.x;  // the next row
        steps[thread] = {partial[thread], thread < half};
        if (with_barriers)
            __syncthreads();
    }
    if (thread == 0)
        *sum = partial[0];
}

// The other tree: every second thread adds its neighbour's value, then every fourth the one two
// places on, and so on.
__global__ void sum_by_neighbours(const int* values, int* sum, TreeCell* steps) {
    int* partial = dynamic_shared<int>();
    const unsigned int thread = threadIdx.x;
    partial[thread] = values[thread];
    steps[thread] = {partial[thread], false};
    __syncthreads();
    for (unsigned int distance = 1; distance < blockDim.x; distance *= 2) {
        const bool is_busy = thread % (2 * distance) == 0;
        if (is_busy)
            partial[thread] += partial[thread + distance];
        steps += blockDim.x;
        steps[thread] = {partial[thread], is_busy};
        __syncthreads();
    }
    if (thread == 0)
        *sum = partial[0];
}

}  // namespace

TreeSteps sum_of_block(TreeKernel kernel, const std::vector<int>& values) {
    const std::size_t threads = values.size();
    std::size_t rows = 1;  // the values, then a row for each step
    for (std::size_t left = threads; left > 1; left /= 2)
        rows++;
    Stream stream;
    const Buffer<int> device_values(values);
    Buffer<int> sum(1);
    Buffer<TreeCell> device_steps(std::vector<TreeCell>(rows * threads));
    auto* function = kernel == TreeKernel::interleaved  ? sum_by_neighbours
                     : kernel == TreeKernel::sequential ? sum_by_halves<true>
                                                        : sum_by_halves<false>;
    // One block; its shared memory has room for an int of each thread.
    launch(stream, {1, static_cast<unsigned int>(threads), threads * sizeof(int)}, function,
           device_values.data(), sum.data(), device_steps.data());
    stream.synchronize();
    const std::vector<TreeCell> cells = device_steps.to_host_now();
    TreeSteps result;
    for (auto row = cells.begin(); row != cells.end(); row += static_cast<std::ptrdiff_t>(threads))
        result.cells.emplace_back(row, row + static_cast<std::ptrdiff_t>(threads));
    result.sum = sum.to_host_now()[0];
    return result;
}

}  // namespace ddp
