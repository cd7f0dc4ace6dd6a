#pragma once
// Ranges for kernels that walk over rows: each block takes rows of its own, and the threads of the
// block share the columns of a row.
//
//     for (std::size_t row : row_range(rows))
//         for (std::size_t column : column_range(columns))
//             y[row * columns + column] = scale[row] * x[row * columns + column];
//
// On a GPU neighbouring threads take neighbouring columns. On a CPU one thread takes all columns,
// in an inner loop that the compiler vectorises. Values that belong to the row as a whole
// (scale[row]) are read once.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>

#include "common/gpu/grid.hpp"
#include "common/gpu/launch.hpp"

namespace ddp {

#if defined(__CUDACC__) || !defined(DDP_CUDA)

// Returns share `i` of `shares` of 0 .. n-1, distributed as grid_range does.
__device__ inline GridRange share_of(std::size_t n, std::size_t i, std::size_t shares) {
#if defined(__CUDACC__)
    return {i, n, {shares}};
#else
    return {n * i / shares, n * (i + 1) / shares, {}};
#endif
}

// Returns the calling block's rows. All threads of a block get the same rows, so the loop may
// contain __syncthreads.
__device__ inline GridRange row_range(std::size_t rows) {
    return share_of(rows, blockIdx.x, gridDim.x);
}

// Returns the calling thread's columns, within the rows of its block.
__device__ inline GridRange column_range(std::size_t columns) {
    return share_of(columns, threadIdx.x, blockDim.x);
}

// Calls work.operator()<n>(i) for the elements of one thread: for `at_a_time` of them, i, i + step,
// ..., as long as that many are left, and then for one after the other. A GPU's memory is kept busy
// by loads that are under way together: work loads all n elements before it stores one. A CPU needs
// no such help, and its compiler makes vectors of neighbours. Only work that reads many arrays
// takes several there, too (`on_cpu`).
template <std::size_t at_a_time, std::size_t on_cpu = 1, class Work>
__device__ void by_several(GridRange range, const Work& work) {
    constexpr std::size_t n = kernels_run_on_cpu ? on_cpu : at_a_time;
    const std::size_t step = range.step;
    std::size_t i = range.first;
    for (; i + (n - 1) * step < range.last; i += n * step)
        work.template operator()<n>(i);
    if constexpr (n > 1)
        for (; i < range.last; i += step)
            work.template operator()<1>(i);
}

#endif

// Returns a shape for such kernels: on a GPU one block per row, with one thread per column up to
// 256; on a CPU shape_on_cpu. A single row is one block.
inline LaunchShape rows_for(std::size_t rows, std::size_t columns, Where where = Where::current()) {
#if defined(DDP_CUDA)
    constexpr std::size_t warp = 32;
    constexpr std::size_t max_blocks = 65'536;  // with more rows than this, a block takes several
    const std::size_t threads = std::clamp((columns + warp - 1) / warp * warp, warp, 8 * warp);
    const std::size_t blocks = std::clamp<std::size_t>(rows, 1, max_blocks);
    return {dim3(static_cast<unsigned int>(blocks)), dim3(static_cast<unsigned int>(threads)), 0,
            where};
#else
    (void)columns;
    return shape_on_cpu(static_cast<unsigned int>(std::clamp<std::size_t>(rows, 1, ~0u)), where);
#endif
}

}  // namespace ddp
