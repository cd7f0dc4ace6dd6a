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

// Adds up blockDim.x values. Row k of `steps` gets what every thread has after step k.
template <TreeOrder order, bool with_barriers>
__global__ void sum_by_tree(const int* values, int* sum, TreeCell* steps) {
    int* partial = dynamic_shared<int>();  // one place for each thread of the block
    const unsigned int thread = threadIdx.x, threads = blockDim.x;
    partial[thread] = values[thread];
    steps[thread] = {partial[thread], false};
    __syncthreads();
    for (unsigned int step = 1, left = threads / 2; left > 0; step++, left /= 2) {
        // `left` threads are busy. Their partners are `distance` places on.
        const bool is_interleaved = order == TreeOrder::interleaved;
        const unsigned int distance = is_interleaved ? threads / 2 / left : left;
        const bool is_busy = is_interleaved ? thread % (2 * distance) == 0 : thread < left;
        if (is_busy)
            partial[thread] += partial[thread + distance];
        steps[step * threads + thread] = {partial[thread], is_busy};
        if (with_barriers)
            __syncthreads();
    }
    if (thread == 0)
        *sum = partial[0];
}

}  // namespace

TreeSteps sum_of_block(TreeOrder order, const std::vector<int>& values, bool with_barriers) {
    const std::size_t threads = values.size();
    std::size_t rows = 1;
    for (std::size_t left = threads; left > 1; left /= 2)
        rows++;
    Stream stream;
    const Buffer<int> device_values(values);
    Buffer<int> sum(1);
    Buffer<TreeCell> device_steps(std::vector<TreeCell>(rows * threads));
    auto* kernel = order == TreeOrder::interleaved
                       ? (with_barriers ? sum_by_tree<TreeOrder::interleaved, true>
                                        : sum_by_tree<TreeOrder::interleaved, false>)
                       : (with_barriers ? sum_by_tree<TreeOrder::sequential, true>
                                        : sum_by_tree<TreeOrder::sequential, false>);
    // One block; its shared memory has room for an int of each thread.
    launch(stream, {1, static_cast<unsigned int>(threads), threads * sizeof(int)}, kernel,
           device_values.data(), sum.data(), device_steps.data());
    stream.synchronize();
    const std::vector<TreeCell> cells = device_steps.to_host();
    TreeSteps result;
    for (auto row = cells.begin(); row != cells.end(); row += static_cast<std::ptrdiff_t>(threads))
        result.cells.emplace_back(row, row + static_cast<std::ptrdiff_t>(threads));
    result.sum = sum.to_host()[0];
    return result;
}

}  // namespace ddp
