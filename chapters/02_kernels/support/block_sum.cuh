#pragma once
// The sum of anything, by a block of any size, for kernels of later chapters.
#include "02_kernels/reduction.hpp"
#include "common/gpu/rows.hpp"

namespace ddp {

// Returns the combination of the threads' values to all threads of the block. The tree of
// `sequential`; where a step has an odd number of values, the one in the middle waits.
template <ReduceOp op, class T>
__device__ T combine_over_block(T value) {
    if (blockDim.x == 1)  // as on a CPU
        return value;
    __shared__ T partial[1024];
    const unsigned int thread = threadIdx.x;
    __syncthreads();  // all threads have read the value that was here before
    partial[thread] = value;
    for (unsigned int left = blockDim.x; left > 1; left = (left + 1) / 2) {
        __syncthreads();
        const unsigned int half = (left + 1) / 2;
        if (thread + half < left)
            partial[thread] = combine<op>(partial[thread], partial[thread + half]);
    }
    __syncthreads();
    return partial[0];
}

template <class T>
__device__ T sum_over_block(T value) {
    return combine_over_block<ReduceOp::sum>(value);
}

// Returns term(0) + term(1) + ... + term(n - 1) to all threads of the block: each adds up its
// columns (common/gpu/rows.hpp), and then the threads' sums become one. (`term` is a copy: through
// a reference a CPU's compiler makes no vectors of the loop.)
template <class T, class Term>
__device__ T sum_by_block(std::size_t n, const Term term) {
    const GridRange mine = column_range(n);
    const std::size_t first = mine.first, last = mine.last, step = mine.step;
    T sum{0};
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = first; i < last; i += step)
        sum += term(i);
    return sum_over_block(sum);
}

}  // namespace ddp
