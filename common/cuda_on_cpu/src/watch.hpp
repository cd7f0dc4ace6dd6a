#pragma once
// Who takes notice of what the threads of a launch read and write, and of where they meet: the race
// detector (races/), in a program that is linked with it. In any other, nobody.
#include <cstdint>
#include <memory>

#include "cuda_on_cpu/observe.hpp"

namespace cuda_on_cpu {

class BlockExecutor;
class KernelRun;

// Looks at one block, on the OS thread that runs it.
class BlockWatch {
  public:
    virtual ~BlockWatch() = default;
    // All threads of the block are at a __syncthreads().
    virtual void block_meets() = 0;
    // These lanes of a warp are at a __syncwarp(). (A shuffle or a vote puts no memory in order.)
    virtual void lanes_meet(int warp, unsigned int mask) = 0;
};

// Looks at one launch, whose blocks may run on several OS threads.
class LaunchWatch {
  public:
    virtual ~LaunchWatch() = default;
    virtual std::unique_ptr<BlockWatch> block_begins(std::uint64_t block,
                                                     BlockExecutor& executor) = 0;
    // Returns how its threads have used the arrays of observe_arrays, when it has ended.
    virtual KernelUse use() = 0;
};

// Returns whether this program is linked with the race detector.
bool can_watch();
// Returns nullptr if it is not, if the launch has one thread, or if it is too large to be watched.
std::unique_ptr<LaunchWatch> watch_launch(const KernelRun& run);

}  // namespace cuda_on_cpu
