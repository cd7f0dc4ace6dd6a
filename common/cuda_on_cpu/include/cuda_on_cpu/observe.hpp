#pragma once
// For tests that ask how a result was computed, and not only whether it is right.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda_on_cpu/runtime_api.hpp"

namespace cuda_on_cpu {

// An array whose use by the threads of a kernel is counted.
struct ObservedArray {
    const void* begin = nullptr;
    std::size_t elements = 0;
    std::size_t element_bytes = 4;
};

// The use of one array by the threads of a kernel, in the order of their numbers in the grid: how
// many different elements each has read, and how many it has written; and how often all of them
// together have read any.
struct ArrayUse {
    std::vector<std::uint32_t> read, written;
    std::uint64_t reads = 0;
};

// The uses of all observed arrays; and how often each thread has read shared memory.
struct KernelUse {
    std::vector<ArrayUse> arrays;
    std::vector<std::uint64_t> shared_reads;
};

// A kernel that has run: its shape; how often threads of a block waited for each other in it, over
// all blocks: at a __syncthreads(), or in a warp's exchange; and the use of each observed array, if
// the kernel was compiled for the race detector and that is at work.
struct FinishedKernel {
    LaunchShape shape;
    std::uint64_t meetings;
    KernelUse use;
};

// Calls `observer`, on the stream's thread, after each kernel of the process and before anybody who
// waits for the stream goes on. nullptr: nobody observes.
void observe_kernels(void (*observer)(const FinishedKernel&));

// Returns how many copies to the device there have been from memory that is not pinned: each may
// have made the host wait for its stream.
std::uint64_t pageable_uploads();

// Returns the devices on which there has been a context, each as a bit. A thread's calls make one
// on its current device, which is 0 where the thread has chosen none; on a GPU it takes some
// hundred megabytes.
std::uint64_t devices_with_context();

// Counts the use of these arrays in each kernel that begins from now on.
void observe_arrays(std::vector<ObservedArray> arrays);

}  // namespace cuda_on_cpu
