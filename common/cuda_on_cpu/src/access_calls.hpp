#pragma once
// The functions that the compiler calls at each access to memory, if it is told -fsanitize=thread:
// functions that ThreadSanitizer's library defines, and here whoever includes this file, once in a
// program: the explorer (tools/explore/engine/hooks.cpp) or the race detector (races/hooks.cpp).
// (The names and parameters are those of compiler-rt's tsan_interface.h and
// tsan_interface_atomic.h.) Plain accesses are announced before they happen. Atomic ones happen
// here.
//
// So the kernels' source is what it always is, and a program that is not linked with one of the two
// has nothing of it. Whoever includes this file defines before what the functions do, as functions
// whose names CUDA_ON_CPU_CALL(name) gives:
//     announce(address, bytes, is_write, at)
//     load(address, order, at), store(address, value, order, at)
//     update(address, order, change, at): replaces the value by change(value), and returns it
//     compare_exchange(address, expected, desired, order, order_of_failure, at)
//     enter(at), leave(): a function that has not been inlined, and that was called there
// where `at` is the place in the code and `order` a std::memory_order; and seen_fence
// (cuda_on_cpu/fence.hpp).
#include <atomic>
#include <cstddef>
#include <cstdint>

#define CUDA_ON_CPU_AT __builtin_return_address(0)
#define CUDA_ON_CPU_ORDER(number) static_cast<std::memory_order>(number)

#define CUDA_ON_CPU_PLAIN(bytes)                                           \
    void __tsan_read##bytes(void* address) {                               \
        CUDA_ON_CPU_CALL(announce)(address, bytes, false, CUDA_ON_CPU_AT); \
    }                                                                      \
    void __tsan_write##bytes(void* address) {                              \
        CUDA_ON_CPU_CALL(announce)(address, bytes, true, CUDA_ON_CPU_AT);  \
    }                                                                      \
    void __tsan_unaligned_read##bytes(void* address) {                     \
        CUDA_ON_CPU_CALL(announce)(address, bytes, false, CUDA_ON_CPU_AT); \
    }                                                                      \
    void __tsan_unaligned_write##bytes(void* address) {                    \
        CUDA_ON_CPU_CALL(announce)(address, bytes, true, CUDA_ON_CPU_AT);  \
    }                                                                      \
    void __tsan_volatile_read##bytes(void* address) {                      \
        CUDA_ON_CPU_CALL(announce)(address, bytes, false, CUDA_ON_CPU_AT); \
    }                                                                      \
    void __tsan_volatile_write##bytes(void* address) {                     \
        CUDA_ON_CPU_CALL(announce)(address, bytes, true, CUDA_ON_CPU_AT);  \
    }

#define CUDA_ON_CPU_ATOMIC(bits, T)                                                               \
    T __tsan_atomic##bits##_load(const volatile T* address, int order) {                          \
        return CUDA_ON_CPU_CALL(load)(address, CUDA_ON_CPU_ORDER(order), CUDA_ON_CPU_AT);         \
    }                                                                                             \
    void __tsan_atomic##bits##_store(volatile T* address, T value, int order) {                   \
        CUDA_ON_CPU_CALL(store)(address, value, CUDA_ON_CPU_ORDER(order), CUDA_ON_CPU_AT);        \
    }                                                                                             \
    T __tsan_atomic##bits##_exchange(volatile T* address, T value, int order) {                   \
        return CUDA_ON_CPU_CALL(update)(                                                          \
            address, CUDA_ON_CPU_ORDER(order), [=](T) { return value; }, CUDA_ON_CPU_AT);         \
    }                                                                                             \
    T __tsan_atomic##bits##_fetch_add(volatile T* address, T value, int order) {                  \
        return CUDA_ON_CPU_CALL(update)(                                                          \
            address, CUDA_ON_CPU_ORDER(order), [=](T old) { return T(old + value); },             \
            CUDA_ON_CPU_AT);                                                                      \
    }                                                                                             \
    T __tsan_atomic##bits##_fetch_sub(volatile T* address, T value, int order) {                  \
        return CUDA_ON_CPU_CALL(update)(                                                          \
            address, CUDA_ON_CPU_ORDER(order), [=](T old) { return T(old - value); },             \
            CUDA_ON_CPU_AT);                                                                      \
    }                                                                                             \
    T __tsan_atomic##bits##_fetch_and(volatile T* address, T value, int order) {                  \
        return CUDA_ON_CPU_CALL(update)(                                                          \
            address, CUDA_ON_CPU_ORDER(order), [=](T old) { return T(old & value); },             \
            CUDA_ON_CPU_AT);                                                                      \
    }                                                                                             \
    T __tsan_atomic##bits##_fetch_or(volatile T* address, T value, int order) {                   \
        return CUDA_ON_CPU_CALL(update)(                                                          \
            address, CUDA_ON_CPU_ORDER(order), [=](T old) { return T(old | value); },             \
            CUDA_ON_CPU_AT);                                                                      \
    }                                                                                             \
    T __tsan_atomic##bits##_fetch_xor(volatile T* address, T value, int order) {                  \
        return CUDA_ON_CPU_CALL(update)(                                                          \
            address, CUDA_ON_CPU_ORDER(order), [=](T old) { return T(old ^ value); },             \
            CUDA_ON_CPU_AT);                                                                      \
    }                                                                                             \
    bool __tsan_atomic##bits##_compare_exchange_strong(volatile T* address, T* expected,          \
                                                       T desired, int order, int on_failure) {    \
        return CUDA_ON_CPU_CALL(compare_exchange)(address, expected, desired,                     \
                                                  CUDA_ON_CPU_ORDER(order),                       \
                                                  CUDA_ON_CPU_ORDER(on_failure), CUDA_ON_CPU_AT); \
    }                                                                                             \
    bool __tsan_atomic##bits##_compare_exchange_weak(volatile T* address, T* expected, T desired, \
                                                     int order, int on_failure) {                 \
        return CUDA_ON_CPU_CALL(compare_exchange)(address, expected, desired,                     \
                                                  CUDA_ON_CPU_ORDER(order),                       \
                                                  CUDA_ON_CPU_ORDER(on_failure), CUDA_ON_CPU_AT); \
    }

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void* called_at) {
    CUDA_ON_CPU_CALL(enter)(called_at);
}
void __tsan_func_exit() {
    CUDA_ON_CPU_CALL(leave)();
}
void __tsan_vptr_update(void*, void*) {}

CUDA_ON_CPU_PLAIN(1)
CUDA_ON_CPU_PLAIN(2)
CUDA_ON_CPU_PLAIN(4)
CUDA_ON_CPU_PLAIN(8)
CUDA_ON_CPU_PLAIN(16)
void __tsan_read_range(void* address, std::size_t bytes) {
    CUDA_ON_CPU_CALL(announce)(address, bytes, false, CUDA_ON_CPU_AT);
}
void __tsan_write_range(void* address, std::size_t bytes) {
    CUDA_ON_CPU_CALL(announce)(address, bytes, true, CUDA_ON_CPU_AT);
}

CUDA_ON_CPU_ATOMIC(8, std::uint8_t)
CUDA_ON_CPU_ATOMIC(16, std::uint16_t)
CUDA_ON_CPU_ATOMIC(32, std::uint32_t)
CUDA_ON_CPU_ATOMIC(64, std::uint64_t)
void __tsan_atomic_thread_fence(int order) {
    cuda_on_cpu::seen_fence(CUDA_ON_CPU_ORDER(order));
}
void __tsan_atomic_signal_fence(int) {}
}
