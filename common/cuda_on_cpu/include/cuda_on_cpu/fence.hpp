#pragma once
// Memory fences. A CPU has one scope, the whole system.
#include <atomic>

namespace cuda_on_cpu {

#if defined(__SANITIZE_THREAD__)
// ThreadSanitizer knows no fences. It is told that a fence comes behind all fences before it, which
// is more order than there is, but never less.
void fence(std::memory_order order);
#else
inline void fence(std::memory_order order) {
    std::atomic_thread_fence(order);
}
#endif

}  // namespace cuda_on_cpu
