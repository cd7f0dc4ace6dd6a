// The functions that the compiler calls at each access to memory, if it is told -fsanitize=thread:
// functions that ThreadSanitizer's library defines, and here the explorer. (The names and
// parameters are those of compiler-rt's tsan_interface.h and tsan_interface_atomic.h.) Plain
// accesses are announced before they happen. Atomic ones happen here.
//
// So the kernels' source is what it always is, and a program that is not linked with the explorer
// has nothing of it.
#include <optional>

#include "execution.hpp"
#include "fences.hpp"

namespace cuda_on_cpu {
namespace {

// Returns the execution that this access belongs to; null for what the host does, and for memory
// that the streams do not share.
Execution* explored(const volatile void* address) {
    Execution* execution = Execution::of_this_thread();
    return execution != nullptr && execution->is_shared_memory(address) ? execution : nullptr;
}

void announce(const void* address, std::size_t bytes, bool is_write) {
    if (Execution* execution = explored(address))
        execution->access(address, bytes, is_write);
}

std::memory_order order_of(int number) {
    return static_cast<std::memory_order>(number);
}

template <class T>
T load(const volatile T* address, int order) {
    if (Execution* execution = explored(address))
        return static_cast<T>(execution->load(address, sizeof(T), order_of(order)));
    return __atomic_load_n(address, __ATOMIC_SEQ_CST);
}

template <class T>
void store(volatile T* address, T value, int order) {
    if (Execution* execution = explored(address))
        execution->store(address, sizeof(T), value, order_of(order));
    else
        __atomic_store_n(address, value, __ATOMIC_SEQ_CST);
}

// Replaces the value at `address` by change(value), and returns it.
template <class T, class Change>
T update(volatile T* address, int order, Change change) {
    if (Execution* execution = explored(address))
        return static_cast<T>(
            execution->update(address, sizeof(T), order_of(order), [&](std::uint64_t old) {
                return std::optional<std::uint64_t>(change(static_cast<T>(old)));
            }));
    T old = __atomic_load_n(address, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(address, &old, change(old), false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST)) {
    }
    return old;
}

template <class T>
bool compare_exchange(volatile T* address, T* expected, T desired, int order) {
    Execution* execution = explored(address);
    if (execution == nullptr)
        return __atomic_compare_exchange_n(address, expected, desired, false, __ATOMIC_SEQ_CST,
                                           __ATOMIC_SEQ_CST);
    const T old = static_cast<T>(
        execution->update(address, sizeof(T), order_of(order), [&](std::uint64_t value) {
            return static_cast<T>(value) == *expected ? std::optional<std::uint64_t>(desired)
                                                      : std::nullopt;
        }));
    const bool is_exchanged = old == *expected;
    *expected = old;
    return is_exchanged;
}

}  // namespace

void explored_fence(std::memory_order order) {
    if (Execution* execution = Execution::of_this_thread())
        execution->fence(order);
    else
        std::atomic_thread_fence(order);
}

}  // namespace cuda_on_cpu

#define DDP_ANNOUNCE(bytes)                            \
    void __tsan_read##bytes(void* address) {           \
        cuda_on_cpu::announce(address, bytes, false);  \
    }                                                  \
    void __tsan_write##bytes(void* address) {          \
        cuda_on_cpu::announce(address, bytes, true);   \
    }                                                  \
    void __tsan_volatile_read##bytes(void* address) {  \
        cuda_on_cpu::announce(address, bytes, false);  \
    }                                                  \
    void __tsan_volatile_write##bytes(void* address) { \
        cuda_on_cpu::announce(address, bytes, true);   \
    }

#define DDP_ATOMIC(bits, T)                                                                       \
    T __tsan_atomic##bits##_load(const volatile T* address, int order) {                          \
        return cuda_on_cpu::load(address, order);                                                 \
    }                                                                                             \
    void __tsan_atomic##bits##_store(volatile T* address, T value, int order) {                   \
        cuda_on_cpu::store(address, value, order);                                                \
    }                                                                                             \
    T __tsan_atomic##bits##_exchange(volatile T* address, T value, int order) {                   \
        return cuda_on_cpu::update(address, order, [=](T) { return value; });                     \
    }                                                                                             \
    T __tsan_atomic##bits##_fetch_add(volatile T* address, T value, int order) {                  \
        return cuda_on_cpu::update(address, order, [=](T old) { return T(old + value); });        \
    }                                                                                             \
    T __tsan_atomic##bits##_fetch_sub(volatile T* address, T value, int order) {                  \
        return cuda_on_cpu::update(address, order, [=](T old) { return T(old - value); });        \
    }                                                                                             \
    T __tsan_atomic##bits##_fetch_and(volatile T* address, T value, int order) {                  \
        return cuda_on_cpu::update(address, order, [=](T old) { return T(old & value); });        \
    }                                                                                             \
    T __tsan_atomic##bits##_fetch_or(volatile T* address, T value, int order) {                   \
        return cuda_on_cpu::update(address, order, [=](T old) { return T(old | value); });        \
    }                                                                                             \
    T __tsan_atomic##bits##_fetch_xor(volatile T* address, T value, int order) {                  \
        return cuda_on_cpu::update(address, order, [=](T old) { return T(old ^ value); });        \
    }                                                                                             \
    bool __tsan_atomic##bits##_compare_exchange_strong(volatile T* address, T* expected,          \
                                                       T desired, int order, int) {               \
        return cuda_on_cpu::compare_exchange(address, expected, desired, order);                  \
    }                                                                                             \
    bool __tsan_atomic##bits##_compare_exchange_weak(volatile T* address, T* expected, T desired, \
                                                     int order, int) {                            \
        return cuda_on_cpu::compare_exchange(address, expected, desired, order);                  \
    }

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void*, void*) {}

DDP_ANNOUNCE(1)
DDP_ANNOUNCE(2)
DDP_ANNOUNCE(4)
DDP_ANNOUNCE(8)
DDP_ANNOUNCE(16)
void __tsan_read_range(void* address, std::size_t bytes) {
    cuda_on_cpu::announce(address, bytes, false);
}
void __tsan_write_range(void* address, std::size_t bytes) {
    cuda_on_cpu::announce(address, bytes, true);
}

DDP_ATOMIC(8, std::uint8_t)
DDP_ATOMIC(16, std::uint16_t)
DDP_ATOMIC(32, std::uint32_t)
DDP_ATOMIC(64, std::uint64_t)
void __tsan_atomic_thread_fence(int order) {
    cuda_on_cpu::explored_fence(cuda_on_cpu::order_of(order));
}
void __tsan_atomic_signal_fence(int) {}
}
