#pragma once
// Time for kernels: a clock that they can read, and how long and beside whom they may run.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>

#if !defined(DDP_CUDA)
#include "cuda_on_cpu/settings.hpp"
#endif

namespace ddp {

#if defined(__CUDACC__) || !defined(DDP_CUDA)

// Nanoseconds since some moment, the same for all kernels of a device; on a CPU for all processes
// of the host. A GPU moves it on in steps of up to a microsecond.
__device__ inline std::uint64_t device_clock_ns() {
#if defined(__CUDACC__)
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
#else
    return static_cast<std::uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
#endif
}

#endif

// Kernels of several streams that wait for one another must all be able to begin. By default the
// streams of a GPU share 8 queues, in which a kernel may stand behind the one that waits for it;
// and a kernel is loaded when it is first launched, which may wait for all that run. The first CUDA
// call of a process reads these settings: to be called before it. What the environment says counts
// more.
inline void let_kernels_run_side_by_side() {
#if defined(DDP_CUDA)
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
#endif
}

// Announces kernels that wait, each wait having a limit of its own, for up to `seconds` in all (0:
// for ever). A GPU lets any kernel run; on a CPU one that runs for longer than the runtime's limit
// is taken for an endless loop, so that limit is raised where it is lower.
inline void let_kernels_run(double seconds) {
#if defined(DDP_CUDA)
    (void)seconds;
#else
    cuda_on_cpu::Settings settings = cuda_on_cpu::settings();
    const double limit_s = settings.kernel_timeout_s;
    const double raised_s = seconds == 0 || limit_s == 0 ? 0 : std::max(limit_s, seconds);
    if (raised_s == limit_s)
        return;
    settings.kernel_timeout_s = raised_s;
    cuda_on_cpu::set_settings(settings);
#endif
}

}  // namespace ddp
