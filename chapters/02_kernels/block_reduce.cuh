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
// 5. accumulators: each thread has 32 sums of its own before the tree begins.
#include <limits>
#include <type_traits>

#include "02_kernels/reduction.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {

inline constexpr unsigned int elements_per_thread = 8;  // in `sequential` and `warps`

// The sums of a thread in `accumulators`: enough to fill a quarter of its registers, which is 32
// floats at 512 threads per block. (A multiprocessor has 65,536 registers of 4 bytes for all
// threads of a block.) Another quarter is for as many loads in flight.
template <class T, unsigned int max_threads>
inline constexpr unsigned int sums_per_thread = 65'536 / max_threads / 4 / (sizeof(T) / 4);

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

// ---- 1. Every thread adds to one place, and only one thread at a time can

// True for the operations and types that CUDA has an atomic for.
template <ReduceOp op, class T>
inline constexpr bool has_atomic = op == ReduceOp::sum || std::is_same_v<T, int>;

// Replaces *result by *result op value, in one step that no other thread can interrupt.
template <ReduceOp op, class T>
__device__ void combine_atomically(T* result, T value) {
    if constexpr (op == ReduceOp::sum)
        atomicAdd(result, value);
    else if constexpr (op == ReduceOp::maximum)
        atomicMax(result, value);
    else
        atomicMin(result, value);
}

// Writes the value that reduce_by_atomics begins with. Runs in a single thread.
template <ReduceOp op, class T>
__global__ void begin_atomics(T* result) {
    *result = neutral<op, T>();
}

// Adds every element to *result, which begin_atomics has written.
template <ReduceOp op, class T>
__global__ void reduce_by_atomics(std::size_t n, const T* values, T* result) {
    for (std::size_t i : grid_range(n))
        combine_atomically<op>(result, values[i]);
}

// ---- 2. A tree in shared memory: log2(B) steps for the B elements of a block

// Reduces B elements to results[blockIdx.x]. In every step half of the busy threads become idle,
// and the others are farther apart: every warp keeps running for a few of its lanes.
template <ReduceOp op, class T>
__global__ void reduce_interleaved(std::size_t n, const T* values, T* results) {
    T* partial = dynamic_shared<T>();
    const unsigned int thread = threadIdx.x;
    const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + thread;
    // Read: one element per thread.
    partial[thread] = i < n ? values[i] : neutral<op, T>();
    __syncthreads();
    // The tree: partial[0] holds the block's value after log2(B) steps.
    for (unsigned int distance = 1; distance < blockDim.x; distance *= 2) {
        if (thread % (2 * distance) == 0)
            partial[thread] = combine<op>(partial[thread], partial[thread + distance]);
        __syncthreads();
    }
    if (thread == 0)
        results[blockIdx.x] = partial[0];
}

// ---- 3. The busy threads are next to each other, so that whole warps finish early

// Returns the value of this thread's 8 elements: every B-th one of the block's 8 B, so that in each
// read the threads of a warp have neighbouring addresses.
template <ReduceOp op, class T>
__device__ T combine_elements(std::size_t n, const T* values) {
    const std::size_t block = blockDim.x;
    const std::size_t first = blockIdx.x * block * elements_per_thread + threadIdx.x;
    T mine = neutral<op, T>();
    for (std::size_t k = 0; k < elements_per_thread; k++)
        if (first + k * block < n)
            mine = combine<op>(mine, values[first + k * block]);
    return mine;
}

// Reduces 8 B elements to results[blockIdx.x].
template <ReduceOp op, class T>
__global__ void reduce_sequential(std::size_t n, const T* values, T* results) {
    T* partial = dynamic_shared<T>();
    const unsigned int thread = threadIdx.x;
    // Read: each thread brings the value of eight elements.
    partial[thread] = combine_elements<op>(n, values);
    __syncthreads();
    // The tree: the first half of the threads adds the values of the second half.
    for (unsigned int half = blockDim.x / 2; half > 0; half /= 2) {
        if (thread < half)
            partial[thread] = combine<op>(partial[thread], partial[thread + half]);
        __syncthreads();
    }
    if (thread == 0)
        results[blockIdx.x] = partial[0];
}

// ---- 4. The lanes of a warp read each other's registers, without shared memory or barrier

// Returns the warp's value in lane 0; the other lanes get something undefined. All 32 lanes call.
template <ReduceOp op, class T>
__device__ T combine_warp(T value) {
    for (unsigned int half = 16; half > 0; half /= 2)
        value = combine<op>(value, __shfl_down_sync(0xffffffffu, value, half));
    return value;
}

// Returns the block's value in thread 0. The block consists of whole warps, at most 32 of them. A
// second call in the same kernel needs a barrier before it.
template <ReduceOp op, class T>
__device__ T combine_block(T value) {
    __shared__ T of_warp[32];
    const unsigned int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    // First within each warp ...
    value = combine_warp<op>(value);
    if (lane == 0)
        of_warp[warp] = value;
    __syncthreads();
    // ... then the first warp over the values of all warps.
    if (warp == 0)
        value = combine_warp<op>(lane < blockDim.x / 32 ? of_warp[lane] : neutral<op, T>());
    return value;
}

// Reduces 8 B elements to results[blockIdx.x].
template <ReduceOp op, class T>
__global__ void reduce_by_warps(std::size_t n, const T* values, T* results) {
    const T value = combine_block<op>(combine_elements<op>(n, values));
    if (threadIdx.x == 0)
        results[blockIdx.x] = value;
}

// ---- 5. Each thread reads 32 elements at a time

// Returns the value of this thread's share of the array. Most of the time now goes into reading, so
// each thread reads 32 elements at a time for 32 sums that do not wait for one another. On a GPU 32
// reads are in flight together; on a CPU the sums fill the lanes of the vector units.
template <ReduceOp op, unsigned int sum_count, class T>
__device__ T combine_share(std::size_t n, const T* __restrict__ values) {
    const GridRange share = grid_range(n);
    const std::size_t step = share.step;
    T sums[sum_count];
    for (T& sum : sums)
        sum = neutral<op, T>();
    std::size_t i = share.first;
    // Whole groups of 32 elements, one for each sum.
    for (; i + (sum_count - 1) * step < share.last; i += sum_count * step)
        for (std::size_t k = 0; k < sum_count; k++)
            sums[k] = combine<op>(sums[k], values[i + k * step]);
    // The incomplete last group.
    for (std::size_t k = 0; k < sum_count; k++)
        if (i + k * step < share.last)
            sums[k] = combine<op>(sums[k], values[i + k * step]);
    // The 32 sums become one, by the tree of `sequential`.
    for (std::size_t half = sum_count / 2; half > 0; half /= 2)
        for (std::size_t k = 0; k < half; k++)
            sums[k] = combine<op>(sums[k], sums[k + half]);
    return sums[0];
}

// Reduces the shares of a block's threads to results[blockIdx.x]. The sums take many registers, of
// which a thread has 64 in a block of 1024 threads. So there is a separate kernel for blocks of at
// most 512 threads.
template <ReduceOp op, class T, unsigned int max_threads>
__global__ void __launch_bounds__(max_threads)
    reduce_by_lanes(std::size_t n, const T* values, T* results) {
    const T value =
        combine_block<op>(combine_share<op, sums_per_thread<T, max_threads>>(n, values));
    if (threadIdx.x == 0)
        results[blockIdx.x] = value;
}

}  // namespace ddp
