#pragma once
// The names that a kernel uses: coordinates, barriers, warps, atomics. One CUDA thread is one fiber
// (or a plain call, where a block has one thread); all threads of a block share one OS thread, so
// that shared memory is simply memory of that OS thread.
#include <math.h>

#include <atomic>
#include <bit>
#include <concepts>
#include <cstring>
#include <type_traits>

#include "cuda_on_cpu/fence.hpp"
#include "cuda_on_cpu/types.hpp"

#if defined(CUDA_ON_CPU_CONTRACT)  // a product and a sum become one operation, as with nvcc
#define __global__ __attribute__((optimize("fp-contract=fast")))
#else
#define __global__
#endif
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static thread_local

// Set by the executor whenever another CUDA thread of the block takes over this OS thread.
// The library is linked into the program, so these have fixed places in a thread's memory
// (local-exec). Without the attribute, ld 2.40 may stop at the vector instructions with which g++
// reads them. What another program loads (-fPIC, and not -fPIE) finds its own at run time.
#if defined(__PIC__) && !defined(__PIE__)
#define CUDA_ON_CPU_COORDINATE extern constinit thread_local
#else
#define CUDA_ON_CPU_COORDINATE [[gnu::tls_model("local-exec")]] extern constinit thread_local
#endif
CUDA_ON_CPU_COORDINATE uint3 threadIdx;
CUDA_ON_CPU_COORDINATE uint3 blockIdx;
CUDA_ON_CPU_COORDINATE dim3 blockDim;
CUDA_ON_CPU_COORDINATE dim3 gridDim;
inline constexpr int warpSize = 32;

namespace cuda_on_cpu {

enum class WarpOperation { sync, ballot, shuffle, shuffle_up, shuffle_down, shuffle_xor };

// Each blocks the calling CUDA thread as CUDA says, and runs the block's other threads meanwhile.
void block_barrier(Where where);
std::uint64_t warp_exchange(WarpOperation operation, unsigned int mask, std::uint64_t value,
                            int argument, int width, Where where);
void yield(unsigned int nanoseconds, Where where);
[[noreturn]] void trap(Where where);
// The block's dynamic shared memory (third launch parameter); one byte past its end is a guard
// page.
void* dynamic_shared_memory();

template <class T>
requires(std::is_trivially_copyable_v<T> && sizeof(T) <= 8) T
    exchange(WarpOperation operation, unsigned int mask, T value, int argument, int width,
             Where where) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = warp_exchange(operation, mask, bits, argument, width, where);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

}  // namespace cuda_on_cpu

// ---- Barriers
inline void __syncthreads(cuda_on_cpu::Where where = cuda_on_cpu::Where::current()) {
    cuda_on_cpu::block_barrier(where);
}
inline void __syncwarp(unsigned int mask = 0xffffffffu,
                       cuda_on_cpu::Where where = cuda_on_cpu::Where::current()) {
    cuda_on_cpu::warp_exchange(cuda_on_cpu::WarpOperation::sync, mask, 0, 0, 32, where);
}
inline void __nanosleep(unsigned int nanoseconds,
                        cuda_on_cpu::Where where = cuda_on_cpu::Where::current()) {
    cuda_on_cpu::yield(nanoseconds, where);
}
[[noreturn]] inline void __trap(cuda_on_cpu::Where where = cuda_on_cpu::Where::current()) {
    cuda_on_cpu::trap(where);
}

// ---- Warps: 32 neighbours exchange registers
template <class T>
T __shfl_sync(unsigned int mask, T value, int source_lane, int width = 32,
              cuda_on_cpu::Where where = cuda_on_cpu::Where::current()) {
    return cuda_on_cpu::exchange(cuda_on_cpu::WarpOperation::shuffle, mask, value, source_lane,
                                 width, where);
}
template <class T>
T __shfl_up_sync(unsigned int mask, T value, unsigned int delta, int width = 32,
                 cuda_on_cpu::Where where = cuda_on_cpu::Where::current()) {
    return cuda_on_cpu::exchange(cuda_on_cpu::WarpOperation::shuffle_up, mask, value,
                                 static_cast<int>(delta), width, where);
}
template <class T>
T __shfl_down_sync(unsigned int mask, T value, unsigned int delta, int width = 32,
                   cuda_on_cpu::Where where = cuda_on_cpu::Where::current()) {
    return cuda_on_cpu::exchange(cuda_on_cpu::WarpOperation::shuffle_down, mask, value,
                                 static_cast<int>(delta), width, where);
}
template <class T>
T __shfl_xor_sync(unsigned int mask, T value, int lane_mask, int width = 32,
                  cuda_on_cpu::Where where = cuda_on_cpu::Where::current()) {
    return cuda_on_cpu::exchange(cuda_on_cpu::WarpOperation::shuffle_xor, mask, value, lane_mask,
                                 width, where);
}
inline unsigned int __ballot_sync(unsigned int mask, int predicate,
                                  cuda_on_cpu::Where where = cuda_on_cpu::Where::current()) {
    return static_cast<unsigned int>(cuda_on_cpu::warp_exchange(
        cuda_on_cpu::WarpOperation::ballot, mask, predicate != 0, 0, 32, where));
}
inline int __any_sync(unsigned int mask, int predicate,
                      cuda_on_cpu::Where where = cuda_on_cpu::Where::current()) {
    return __ballot_sync(mask, predicate, where) != 0;
}
inline int __all_sync(unsigned int mask, int predicate,
                      cuda_on_cpu::Where where = cuda_on_cpu::Where::current()) {
    return __ballot_sync(mask, predicate == 0, where) ==
           0;  // lanes that are not there do not object
}

// ---- Atomics: real ones, since other streams and other processes may touch the same memory

// Inlined wherever they are called, as cuda_on_cpu/fence.hpp says.
template <class T>
requires std::same_as<T, int> || std::same_as<T, unsigned int> ||
    std::same_as<T, unsigned long long> || std::same_as<T, float> || std::same_as<T, double>
        __forceinline__ T atomicAdd(T* address, std::type_identity_t<T> value) {
    return std::atomic_ref<T>(*address).fetch_add(value, std::memory_order_relaxed);
}
template <class T>
requires std::same_as<T, int> || std::same_as<T, unsigned int> __forceinline__ T
atomicSub(T* address, std::type_identity_t<T> value) {
    return std::atomic_ref<T>(*address).fetch_sub(value, std::memory_order_relaxed);
}
template <class T>
requires std::same_as<T, int> || std::same_as<T, unsigned int> ||
    std::same_as<T, unsigned long long> || std::same_as<T, float>
        __forceinline__ T atomicExch(T* address, std::type_identity_t<T> value) {
    return std::atomic_ref<T>(*address).exchange(value, std::memory_order_relaxed);
}
template <class T>
requires std::same_as<T, int> || std::same_as<T, unsigned int> ||
    std::same_as<T, unsigned long long>
        __forceinline__ T atomicCAS(T* address, std::type_identity_t<T> compare,
                                    std::type_identity_t<T> value) {
    std::atomic_ref<T>(*address).compare_exchange_strong(compare, value, std::memory_order_relaxed);
    return compare;
}
template <std::integral T>
__forceinline__ T atomicMax(T* address, std::type_identity_t<T> value) {
    std::atomic_ref<T> target(*address);
    T old = target.load(std::memory_order_relaxed);
    while (old < value && !target.compare_exchange_weak(old, value, std::memory_order_relaxed)) {
    }
    return old;
}
template <std::integral T>
__forceinline__ T atomicMin(T* address, std::type_identity_t<T> value) {
    std::atomic_ref<T> target(*address);
    T old = target.load(std::memory_order_relaxed);
    while (value < old && !target.compare_exchange_weak(old, value, std::memory_order_relaxed)) {
    }
    return old;
}
template <std::integral T>
__forceinline__ T atomicAnd(T* address, std::type_identity_t<T> value) {
    return std::atomic_ref<T>(*address).fetch_and(value, std::memory_order_relaxed);
}
template <std::integral T>
__forceinline__ T atomicOr(T* address, std::type_identity_t<T> value) {
    return std::atomic_ref<T>(*address).fetch_or(value, std::memory_order_relaxed);
}

// A fence of a wider scope is never weaker, and a CPU has only the widest.
__forceinline__ void __threadfence_system() {
    cuda_on_cpu::fence(std::memory_order_seq_cst);
}
__forceinline__ void __threadfence() {
    __threadfence_system();
}
__forceinline__ void __threadfence_block() {
    __threadfence_system();
}

// ---- Arithmetic that CUDA has and the C library has not
inline float rsqrtf(float x) {
    return 1.0f / sqrtf(x);
}
inline int __popc(unsigned int x) {
    return std::popcount(x);
}
inline int __clz(int x) {
    return std::countl_zero(static_cast<unsigned int>(x));
}
inline int __ffs(int x) {
    return x == 0 ? 0 : std::countr_zero(static_cast<unsigned int>(x)) + 1;
}
