#pragma once
// Launches of kernels, and the check that follows each of them.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "common/gpu/check.hpp"
#if !defined(DDP_CUDA)
#include <cuda_on_cpu/settings.hpp>
#endif

namespace ddp {

// The shape of a launch: blocks in the grid, threads in a block, and dynamic shared memory per
// block.
struct LaunchShape {
    LaunchShape(dim3 grid, dim3 block, std::size_t shared_bytes = 0, Where where = Where::current())
        : grid(grid), block(block), shared_bytes(shared_bytes), where(where) {}

    dim3 grid;
    dim3 block;
    std::size_t shared_bytes;
    Where where;  // file and line of the launch, for messages
};

// True if this build runs kernels on the CPU, false if on a GPU.
#if defined(DDP_CUDA)
inline constexpr bool kernels_run_on_cpu = false;
#else
inline constexpr bool kernels_run_on_cpu = true;
#endif

// The limits that the streams of the current device share.
struct DeviceLimits {
    unsigned int multiprocessors;  // each runs a block at any time, however much the block needs
    unsigned int queues;  // a stream beyond them shares a queue, and may wait for another's kernel
};

// Returns the limits of the current device. A CPU, whose threads take turns, has none, unless it
// plays a small GPU (CUDA_ON_CPU=multiprocessors=20).
inline DeviceLimits device_limits() {
#if !defined(DDP_CUDA)
    const int played_queues = cuda_on_cpu::settings().queues;
    if (cuda_on_cpu::settings().multiprocessors == 0)
        return {~0u, played_queues > 0 ? static_cast<unsigned int>(played_queues) : ~0u};
#else
    constexpr int played_queues = 0;
#endif
    int device = 0, multiprocessors = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
          "cudaDeviceGetAttribute");
    // check.cpp has set it, unless it was to keep what it found.
    const char* variable = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    const int queues = variable == nullptr ? 8 : std::clamp(std::atoi(variable), 1, 32);
    return {static_cast<unsigned int>(multiprocessors),
            static_cast<unsigned int>(played_queues > 0 ? played_queues : queues)};
}

// Returns whether a launch may have to load its kernel first: on a GPU, and on a CPU that plays
// one.
inline bool loads_kernels() {
#if defined(DDP_CUDA)
    return true;
#else
    return cuda_on_cpu::settings().multiprocessors > 0;
#endif
}

// Returns whether every launch waits until its kernel has ended, which CUDA_LAUNCH_BLOCKING=1 asks
// of a GPU.
inline bool launches_wait() {
    const char* blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
    return loads_kernels() && blocking != nullptr && std::atoi(blocking) != 0;
}

// Returns the shape that a CPU gives to kernels of any number of threads: one thread, whose loop
// the compiler vectorises. Tests ask for several (CUDA_ON_CPU=shape=3x5), of which `max_blocks`
// are taken.
inline LaunchShape shape_on_cpu(unsigned int max_blocks = ~0u, Where where = Where::current()) {
#if defined(DDP_CUDA)
    (void)max_blocks;
    return {dim3(1), dim3(1), 0, where};
#else
    const cuda_on_cpu::UsualShape usual = cuda_on_cpu::settings().shape;
    return {dim3(std::min(usual.blocks, max_blocks)), dim3(usual.threads), 0, where};
#endif
}

// Returns a shape for kernels that walk over n elements by grid_range: on a GPU enough threads to
// fill it, on a CPU shape_on_cpu.
inline LaunchShape grid_for(std::size_t n, Where where = Where::current()) {
    if (kernels_run_on_cpu)
        return shape_on_cpu(~0u, where);
    constexpr std::size_t block = 256;
    constexpr std::size_t max_blocks = 2048;  // each thread then takes several elements
    const std::size_t blocks = std::clamp<std::size_t>((n + block - 1) / block, 1, max_blocks);
    return {dim3(static_cast<unsigned int>(blocks)), dim3(block), 0, where};
}

#if defined(__CUDACC__) || !defined(DDP_CUDA)

// Enqueues `kernel` on `stream` with `arguments`, which are converted to the kernel's parameter
// types and copied. Returns at once. Throws GpuError if this launch is refused; an older error of
// the thread is not its own. An error inside the kernel is reported when the stream is
// synchronised.
template <class... Parameters, class... Arguments>
void launch(cudaStream_t stream, const LaunchShape& shape, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
    static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                  "a launch needs one argument for each parameter of its kernel");
    const auto launch_values = [&](const Parameters&... values) {
        void* pointers[] = {const_cast<void*>(static_cast<const void*>(&values))..., nullptr};
        check(cudaLaunchKernel(kernel, shape.grid, shape.block, pointers, shape.shared_bytes,
                               stream DDP_CALLED_AT(shape.where)),
              "kernel launch", shape.where);
    };
    launch_values(static_cast<const Parameters&>(arguments)...);
}

// Returns whether DDP_PLAIN_LAUNCHES=1 asks that kernels which wait for others be launched like all
// others: for a GPU on which two cooperative ones do not run side by side. Nothing then promises
// that all blocks of a kernel run at the same time, but half of the GPU is kept free for them.
inline bool launches_plainly() {
    static const bool answer = [] {
        const char* asked = std::getenv("DDP_PLAIN_LAUNCHES");
        return asked != nullptr && std::atoi(asked) != 0;
    }();
    return answer;
}

// Enqueues a kernel whose blocks wait for one another, or for those of another rank: all its blocks
// run at the same time, or the launch throws GpuError.
template <class... Parameters, class... Arguments>
void launch_cooperative(cudaStream_t stream, const LaunchShape& shape,
                        void (*kernel)(Parameters...), Arguments&&... arguments) {
    static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                  "a launch needs one argument for each parameter of its kernel");
    if (launches_plainly()) {
        launch(stream, shape, kernel, std::forward<Arguments>(arguments)...);
        return;
    }
    const auto launch_values = [&](const Parameters&... values) {
        void* pointers[] = {const_cast<void*>(static_cast<const void*>(&values))..., nullptr};
        check(cudaLaunchCooperativeKernel(kernel, shape.grid, shape.block, pointers,
                                          shape.shared_bytes, stream DDP_CALLED_AT(shape.where)),
              "cooperative kernel launch", shape.where);
    };
    launch_values(static_cast<const Parameters&>(arguments)...);
}

#endif

}  // namespace ddp
