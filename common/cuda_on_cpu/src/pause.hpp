#pragma once
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace cuda_on_cpu {

// A breath in a loop that looks again and again: the core's other hyperthread goes first.
inline void pause_briefly() {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace cuda_on_cpu
