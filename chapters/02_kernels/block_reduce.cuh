#pragma once
// The kernels that reduce an array to one value for each block, in the README's order.
//
//     x0  x1  x2  x3  x4  x5  x6  x7         a tree: eight elements, three steps
//
//     step   2. interleaved                  3. sequential
//        1   x0+x1  x2+x3  x4+x5  x6+x7      x0+x4  x1+x5  x2+x6  x3+x7
//        2   x0+x2  x4+x6                    x0+x2  x1+x3
//        3   x0+x4                           x0+x1
//
// 1. atomics: no tree, every thread adds to one place. 4. warps: the tree of 3, in registers.
// 5. lanes: each thread has 32 sums of its own before the tree begins.
#include <limits>
#include <type_traits>

#include "02_kernels/reduction.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {

inline constexpr unsigned int elements_per_thread = 8;  // of `sequential` and `warps`
inline constexpr unsigned int sums_per_thread = 32;     // of `lanes`

// Returns the element that changes nothing: x op neutral() is x.
template <ReduceOp op, class T>
__device__ constexpr T neutral() {
    using Limits = std::numeric_limits<T>;
    if constexpr (op == ReduceOp::sum)
        return T{0};
    else if constexpr (op == ReduceOp::maximum)
        return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    else
        return Limits::has_infinity ? Limits::infinity() : Limits::max();
}

// ---- 1. Every thread adds to one place. Only one at a time can.

template <ReduceOp op, class T>
inline constexpr bool has_atomic = op == ReduceOp::sum || std::is_same_v<T, int>;

template <ReduceOp op, class T>
__device__ void combine_atomically(T* result, T value) {
    if constexpr (op == ReduceOp::sum)
        atomicAdd(result, value);
    else if constexpr (op == ReduceOp::maximum)
        atomicMax(result, value);
    else
        atomicMin(result, value);
}

template <ReduceOp op, class T>
__global__ void begin_atomics(T* result) {
    *result = neutral<op, T>();
}

template <ReduceOp op, class T>
__global__ void reduce_by_atomics(std::size_t n, const T* values, T* result) {
    for (std::size_t i : grid_range(n))
        combine_atomically<op>(result, values[i]);
}

// ---- 2. A tree in shared memory: log2(B) steps for the B elements of a block.

// In every step half of the threads that still work fall idle, and those that work stand further
// and further apart: every warp keeps going for a few of its lanes.
template <ReduceOp op, class T>
__global__ void reduce_interleaved(std::size_t n, const T* values, T* results) {
    T* partial = dynamic_shared<T>();
    const unsigned int thread = threadIdx.x;
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + thread;
    partial[thread] = i < n ? values[i] : neutral<op, T>();
    __syncthreads();
    for (unsigned int distance = 1; distance < blockDim.x; distance *= 2) {
        if (thread % (2 * distance) == 0)
            partial[thread] = combine<op>(partial[thread], partial[thread + distance]);
        __syncthreads();
    }
    if (thread == 0)
        results[blockIdx.x] = partial[0];
}

// ---- 3. The threads that work stand together

// Whole warps are done early, and each thread brings more than one element to the tree.

template <ReduceOp op, class T>
__device__ T take_elements(std::size_t n, const T* values) {
    const std::size_t block = blockDim.x;
    const std::size_t first = blockIdx.x * block * elements_per_thread + threadIdx.x;
    T mine = neutral<op, T>();
    for (std::size_t k = 0; k < elements_per_thread; k++)
        if (first + k * block < n)
            mine = combine<op>(mine, values[first + k * block]);
    return mine;
}

template <ReduceOp op, class T>
__global__ void reduce_sequential(std::size_t n, const T* values, T* results) {
    T* partial = dynamic_shared<T>();
    const unsigned int thread = threadIdx.x;
    partial[thread] = take_elements<op>(n, values);
    __syncthreads();
    for (unsigned int half = blockDim.x / 2; half > 0; half /= 2) {
        if (thread < half)
            partial[thread] = combine<op>(partial[thread], partial[thread + half]);
        __syncthreads();
    }
    if (thread == 0)
        results[blockIdx.x] = partial[0];
}

// ---- 4. The lanes of a warp read each other's registers, and need neither memory nor barrier.

// Lane 0 gets the warp's value.
template <ReduceOp op, class T>
__device__ T combine_warp(T value) {
    for (unsigned int half = 16; half > 0; half /= 2)
        value = combine<op>(value, __shfl_down_sync(0xffffffffu, value, half));
    return value;
}

// Thread 0 gets the block's value. For blocks of whole warps, up to 32 of them; a second call in
// the same kernel needs a barrier before it.
template <ReduceOp op, class T>
__device__ T combine_block(T value) {
    __shared__ T of_warp[32];
    const unsigned int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    value = combine_warp<op>(value);
    if (lane == 0)
        of_warp[warp] = value;
    __syncthreads();
    if (warp == 0)
        value = combine_warp<op>(lane < blockDim.x / 32 ? of_warp[lane] : neutral<op, T>());
    return value;
}

template <ReduceOp op, class T>
__global__ void reduce_by_warps(std::size_t n, const T* values, T* results) {
    const T value = combine_block<op>(take_elements<op>(n, values));
    if (threadIdx.x == 0)
        results[blockIdx.x] = value;
}

// ---- 5. Each thread reads as much as it can

// By now the time goes into reading. So each thread reads 32 elements at a time, for 32 sums, none
// of which waits for another. On a GPU that many are on their way at once; on a CPU they fill the
// lanes of its vector units.

template <ReduceOp op, class T>
__device__ T take_share(std::size_t n, const T* __restrict__ values) {
    const GridRange share = grid_range(n);
    const std::size_t step = share.step;
    T sums[sums_per_thread];
    for (T& sum : sums)
        sum = neutral<op, T>();
    std::size_t i = share.first;
    for (; i + (sums_per_thread - 1) * step < share.last; i += sums_per_thread * step)
        for (std::size_t k = 0; k < sums_per_thread; k++)
            sums[k] = combine<op>(sums[k], values[i + k * step]);
    for (std::size_t k = 0; k < sums_per_thread; k++)
        if (i + k * step < share.last)
            sums[k] = combine<op>(sums[k], values[i + k * step]);
    for (std::size_t half = sums_per_thread / 2; half > 0; half /= 2)
        for (std::size_t k = 0; k < half; k++)
            sums[k] = combine<op>(sums[k], sums[k + half]);
    return sums[0];
}

// 32 sums take many registers, and in a block of 1024 threads each has 64 only: too few for sums of
// type double, which are then slower. Smaller blocks are compiled for themselves.
template <ReduceOp op, class T, unsigned int most_threads>
__global__ void __launch_bounds__(most_threads)
    reduce_by_lanes(std::size_t n, const T* values, T* results) {
    const T value = combine_block<op>(take_share<op>(n, values));
    if (threadIdx.x == 0)
        results[blockIdx.x] = value;
}

}  // namespace ddp
