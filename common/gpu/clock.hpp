#pragma once
// Time for kernels: a clock that they can read, and settings that let them run long and side by
// side.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>

#if !defined(DDP_CUDA)
#include "cuda_on_cpu/settings.hpp"
#endif

namespace ddp {

#if defined(__CUDACC__) || !defined(DDP_CUDA)

// Returns nanoseconds since a fixed moment, which is the same for all kernels of a device, and on a
// CPU for all processes of the host. On a GPU the clock advances in steps of up to a microsecond.
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

// Lets kernels of several streams begin although they wait for one another. By default the streams
// of a GPU share 8 queues, where a kernel may queue up behind the very kernel that waits for it;
// and a kernel is loaded at its first launch, which may wait for all running kernels. check.cpp
// calls this before main, since the process's first CUDA call reads these variables. What the
// environment says is overwritten, because containers and job scripts set values that suit other
// programs; DDP_KEEP_CUDA_VARIABLES=1 keeps it. `queues`: for the streams of this process, at most
// 32. NVIDIA's MPS has few for all of its processes.
inline void let_kernels_run_side_by_side(int queues = 32) {
    const int overwrite = std::getenv("DDP_KEEP_CUDA_VARIABLES") == nullptr;
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", std::to_string(queues).c_str(), overwrite);
    setenv("CUDA_MODULE_LOADING", "EAGER", overwrite);
}

// Allows kernels to run for up to `seconds` (0: forever). Kernels that wait for others may take so
// long, and their waits have time-outs of their own. A GPU lets any kernel run. The runtime on a
// CPU takes a kernel beyond its limit for an endless loop, so this raises that limit where it is
// lower.
inline void let_kernels_run(double seconds) {
#if defined(DDP_CUDA)
    (void)seconds;
#else
    cuda_on_cpu::Settings settings = cuda_on_cpu::settings();
    const double limit_s = settings.kernel_timeout_s;
    const double raised_s = seconds == 0 || limit_s == 0 ? 0 : std::max(limit_s, seconds);
    if (raised_s == limit_s || settings.display)
        return;
    settings.kernel_timeout_s = raised_s;
    cuda_on_cpu::set_settings(settings);
#endif
}

}  // namespace ddp
