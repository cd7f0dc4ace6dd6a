// The explorer's part in the functions that the compiler calls at each access
// (access_calls.hpp).
#include <optional>

#include "execution.hpp"

namespace cuda_on_cpu {
namespace {

// Returns the execution that this access belongs to; null for what the host does, and for memory
// that the streams do not share.
Execution* explored(const volatile void* address) {
    Execution* execution = Execution::of_this_thread();
    return execution != nullptr && execution->is_shared_memory(address) ? execution : nullptr;
}

void explored_enter(const void*) {
    if (Execution* execution = Execution::of_this_thread())
        execution->enter();
}
void explored_leave() {
    if (Execution* execution = Execution::of_this_thread())
        execution->leave();
}

void explored_announce(const void* address, std::size_t bytes, bool is_write, const void*) {
    if (Execution* execution = explored(address))
        execution->access(address, bytes, is_write);
}

template <class T>
T explored_load(const volatile T* address, std::memory_order order, const void*) {
    if (Execution* execution = explored(address))
        return static_cast<T>(execution->load(address, sizeof(T), order));
    return __atomic_load_n(address, __ATOMIC_SEQ_CST);
}

template <class T>
void explored_store(volatile T* address, T value, std::memory_order order, const void*) {
    if (Execution* execution = explored(address))
        execution->store(address, sizeof(T), value, order);
    else
        __atomic_store_n(address, value, __ATOMIC_SEQ_CST);
}

// Replaces the value at `address` by change(value), and returns it.
template <class T, class Change>
T explored_update(volatile T* address, std::memory_order order, Change change, const void*) {
    if (Execution* execution = explored(address))
        return static_cast<T>(execution->update(address, sizeof(T), order, [&](std::uint64_t old) {
            return std::optional<std::uint64_t>(change(static_cast<T>(old)));
        }));
    T old = __atomic_load_n(address, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(address, &old, change(old), false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST)) {
    }
    return old;
}

template <class T>
bool explored_compare_exchange(volatile T* address, T* expected, T desired, std::memory_order order,
                               std::memory_order, const void*) {
    Execution* execution = explored(address);
    if (execution == nullptr)
        return __atomic_compare_exchange_n(address, expected, desired, false, __ATOMIC_SEQ_CST,
                                           __ATOMIC_SEQ_CST);
    const T old =
        static_cast<T>(execution->update(address, sizeof(T), order, [&](std::uint64_t value) {
            return static_cast<T>(value) == *expected ? std::optional<std::uint64_t>(desired)
                                                      : std::nullopt;
        }));
    const bool is_exchanged = old == *expected;
    *expected = old;
    return is_exchanged;
}

}  // namespace

void seen_fence(std::memory_order order) {
    if (Execution* execution = Execution::of_this_thread())
        execution->fence(order);
    else
        std::atomic_thread_fence(order);
}

}  // namespace cuda_on_cpu

#define CUDA_ON_CPU_CALL(name) cuda_on_cpu::explored_##name
#include "access_calls.hpp"
