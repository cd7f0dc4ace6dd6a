#pragma once
// Memory fences. A CPU has one scope, the whole system.
#include <atomic>

namespace cuda_on_cpu {

// Both are inlined wherever they are called: in a program that has files with -fsanitize=thread and
// files without, neither may take the other's place.
#if defined(__SANITIZE_THREAD__)
// A fence that somebody takes notice of: the explorer, the race detector, or ThreadSanitizer, which
// knows no fences. It is told that a fence comes behind all fences before it, which is more order
// than there is, but never less.
void seen_fence(std::memory_order order);
[[gnu::always_inline]] inline void fence(std::memory_order order) {
    seen_fence(order);
}
#else
[[gnu::always_inline]] inline void fence(std::memory_order order) {
    std::atomic_thread_fence(order);
}
#endif

}  // namespace cuda_on_cpu
