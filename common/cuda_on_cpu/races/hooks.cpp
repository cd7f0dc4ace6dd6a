// The race detector's part in the functions that the compiler calls at each access
// (access_calls.hpp). Whatever is not done by a thread of a watched kernel costs them a look at one
// thread-local variable.
#include "detector.hpp"

namespace cuda_on_cpu {
namespace {

// Returns the watched block whose thread calls; nullptr if there is none: on the host, and where
// the runtime itself uses a function that was compiled with a kernel's file.
WatchedBlock* watched() {
    return kernel_thread.watch != nullptr && kernel_thread.in_kernel
               ? static_cast<WatchedBlock*>(kernel_thread.watch)
               : nullptr;
}

// The coordinates, which every kernel reads and none writes.
bool is_coordinate(const void* address) {
    const auto lies_in = [&](const auto& variable) {
        return reinterpret_cast<std::uintptr_t>(address) -
                   reinterpret_cast<std::uintptr_t>(&variable) <
               sizeof variable;
    };
    return lies_in(threadIdx) || lies_in(blockIdx) || lies_in(blockDim) || lies_in(gridDim);
}

// Has nothing to destroy when it leaves the kernel.
[[gnu::noinline]] void fail(WatchedBlock& block, const Race& race) {
    kernel_thread.executor->fault(cudaErrorLaunchFailure, block.to_string(race));
}

// Lets `look` look at an access. Nobody may interrupt it: it holds locks.
template <class Look>
void look_at(WatchedBlock& block, Look look) {
    kernel_thread.in_kernel = false;
    const std::optional<Race> race = look();
    if (race)
        fail(block, *race);
    if (race || device_is_lost())
        kernel_thread.executor->leave_kernel();
    kernel_thread.in_kernel = true;
}

void watched_enter(const void*) {}
void watched_leave() {}

void watched_announce(const void* address, std::size_t bytes, bool is_write, const void* at) {
    WatchedBlock* block = watched();
    if (block != nullptr && !is_coordinate(address))
        look_at(*block, [&] {
            return block->plain(reinterpret_cast<std::uintptr_t>(address), bytes, is_write, at);
        });
}

// Looks at an atomic access, which `access` makes.
template <class T, class MakeAccess>
void atomic_access(WatchedBlock& block, const volatile T* address, const void* at,
                   MakeAccess access) {
    __atomic_load_n(address, __ATOMIC_RELAXED);  // if the address is a bad one, it ends here
    look_at(block, [&] {
        return block.atomic(reinterpret_cast<std::uintptr_t>(address), sizeof(T), at, access);
    });
}

template <class T>
T watched_load(const volatile T* address, std::memory_order order, const void* at) {
    WatchedBlock* block = watched();
    if (block == nullptr)
        return __atomic_load_n(address, __ATOMIC_SEQ_CST);
    T value{};
    atomic_access(*block, address, at, [&] {
        value = __atomic_load_n(address, __ATOMIC_SEQ_CST);
        return WatchedBlock::Done{true, false, order};
    });
    return value;
}

template <class T>
void watched_store(volatile T* address, T value, std::memory_order order, const void* at) {
    WatchedBlock* block = watched();
    if (block == nullptr)
        return __atomic_store_n(address, value, __ATOMIC_SEQ_CST);
    atomic_access(*block, address, at, [&] {
        __atomic_store_n(address, value, __ATOMIC_SEQ_CST);
        return WatchedBlock::Done{false, true, order};
    });
}

template <class T, class Change>
T replace(volatile T* address, Change change) {
    T old = __atomic_load_n(address, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(address, &old, change(old), false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST)) {
    }
    return old;
}

// Replaces the value at `address` by change(value), and returns it.
template <class T, class Change>
T watched_update(volatile T* address, std::memory_order order, Change change, const void* at) {
    WatchedBlock* block = watched();
    if (block == nullptr)
        return replace(address, change);
    T old{};
    atomic_access(*block, address, at, [&] {
        old = replace(address, change);
        return WatchedBlock::Done{true, true, order};
    });
    return old;
}

template <class T>
bool watched_compare_exchange(volatile T* address, T* expected, T desired, std::memory_order order,
                              std::memory_order on_failure, const void* at) {
    const auto exchange = [&] {
        return __atomic_compare_exchange_n(address, expected, desired, false, __ATOMIC_SEQ_CST,
                                           __ATOMIC_SEQ_CST);
    };
    WatchedBlock* block = watched();
    if (block == nullptr)
        return exchange();
    bool is_exchanged = false;
    atomic_access(*block, address, at, [&] {
        is_exchanged = exchange();
        return WatchedBlock::Done{true, is_exchanged, is_exchanged ? order : on_failure};
    });
    return is_exchanged;
}

}  // namespace

void seen_fence(std::memory_order order) {
    std::atomic_thread_fence(order);
    if (WatchedBlock* block = watched()) {
        kernel_thread.in_kernel = false;
        block->fence();
        kernel_thread.in_kernel = true;
    }
}

}  // namespace cuda_on_cpu

#define CUDA_ON_CPU_CALL(name) cuda_on_cpu::watched_##name
#include "access_calls.hpp"
