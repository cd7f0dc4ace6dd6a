#pragma once
// The host's side of a flag in pinned memory, which kernels read and write by load_acquire and
// store_release.
#include <atomic>
#include <cstdint>

#include "06_messages/control.hpp"

namespace ddp {

inline std::uint64_t read_flag(Flag& flag) {
    return std::atomic_ref(flag.value).load(std::memory_order_acquire);
}
inline void write_flag(Flag& flag, std::uint64_t value) {
    std::atomic_ref(flag.value).store(value, std::memory_order_release);
}

}  // namespace ddp
