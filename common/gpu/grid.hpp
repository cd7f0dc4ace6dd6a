#pragma once
// The distribution of n elements over the threads of a grid, and the shared memory whose size a
// launch decides.
#include <cuda_runtime.h>

#include <cstddef>

namespace ddp {

#if defined(__CUDACC__) || !defined(DDP_CUDA)

// The distance from one of a thread's elements to its next: a number on a GPU, and 1 on a CPU,
// where the compiler must know it to vectorise the loop.
struct GridStep {
#if defined(__CUDACC__)
    std::size_t elements;
    __device__ operator std::size_t() const {
        return elements;
    }
#else
    constexpr operator std::size_t() const {
        return 1;
    }
#endif
};

// The indices of one thread's elements: `for (std::size_t i : grid_range(n)) y[i] += a * x[i];`
// On a GPU the threads stride through the elements together, so neighbouring threads read
// neighbouring addresses. On a CPU each thread takes one contiguous range, which suits caches and
// vector units.
struct GridRange {
    std::size_t first, last;  // first <= i < last
    GridStep step;

    struct Iterator {
        std::size_t index;
        GridStep step;
        __device__ std::size_t operator*() const { return index; }
        __device__ Iterator& operator++() {
            index += step;
            return *this;
        }
        __device__ bool operator!=(const Iterator& end) const { return index < end.index; }
    };
    __device__ Iterator begin() const { return {first, step}; }
    __device__ Iterator end() const { return {last, step}; }
};

// Returns the calling thread's elements of 0 .. n-1, which all threads of a one-dimensional grid
// share.
__device__ inline GridRange grid_range(std::size_t n) {
    const std::size_t thread = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    const std::size_t threads = static_cast<std::size_t>(gridDim.x) * blockDim.x;
#if defined(__CUDACC__)
    return {thread, n, {threads}};
#else
    return {n * thread / threads, n * (thread + 1) / threads, {}};
#endif
}

// Returns the block's dynamic shared memory (the launch's shared_bytes) as elements of T, aligned
// to 16 bytes.
template <class T>
__device__ T* dynamic_shared() {
#if defined(__CUDACC__)
    extern __shared__ __align__(16) unsigned char dynamic_shared_bytes[];
    return reinterpret_cast<T*>(dynamic_shared_bytes);
#else
    return static_cast<T*>(cuda_on_cpu::dynamic_shared_memory());
#endif
}

#endif

}  // namespace ddp
