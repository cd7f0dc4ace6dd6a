#pragma once
// For tests that ask how a result was computed, and not only whether it is right.
#include <cstdint>

#include "cuda_on_cpu/runtime_api.hpp"

namespace cuda_on_cpu {

// A kernel that has run: its shape, and how often threads of a block waited for each other in it,
// over all blocks: at a __syncthreads(), or in a warp's exchange.
struct FinishedKernel {
    LaunchShape shape;
    std::uint64_t meetings;
};

// Calls `observer`, on the stream's thread, after each kernel of the process and before anybody who
// waits for the stream goes on. nullptr: nobody observes.
void observe_kernels(void (*observer)(const FinishedKernel&));

}  // namespace cuda_on_cpu
