#pragma once
// One launch while it runs: what its blocks share, and how it ends early.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda_on_cpu/runtime_api.hpp"
#include "cuda_on_cpu/settings.hpp"
#include "errors.hpp"
#include "watch.hpp"

namespace cuda_on_cpu {

class KernelRun {
  public:
    KernelRun(const PreparedKernel& kernel, const Settings& settings)
        : kernel(kernel), settings(settings), started(std::chrono::steady_clock::now()) {}

    std::uint64_t blocks() const {
        const dim3& grid = kernel.shape.grid;
        return std::uint64_t{grid.x} * grid.y * grid.z;
    }
    // "kernel saxpy(int, float*), launched at a.cu:12"
    std::string name() const;

    // A lost device ends every launch: each block leaves at its next barrier, sleep or return, and
    // a thread that comes to none of them is interrupted.
    bool is_cancelled() const { return device_is_lost(); }

    // The OS threads that run its blocks now, for interrupting them.
    void enter(pthread_t thread);
    void leave(pthread_t thread);
    void interrupt();

    const PreparedKernel& kernel;
    const Settings settings;
    const std::chrono::steady_clock::time_point started;
    std::atomic<std::uint64_t> meetings{0};         // barriers and warp exchanges: see observe.hpp
    std::atomic<std::uint64_t> finished_blocks{0};  // where they take turns: run_on_new_threads
    std::unique_ptr<LaunchWatch> watch;             // nullptr: nobody watches
    // Loads from the host's memory, and the blocks that made more than a few (setting `polls`).
    std::atomic<std::uint64_t> host_loads{0}, polling_blocks{0};
    // When it has ended: remembers it if it is the one that has polled the host's memory most.
    void note_polls() const;

  private:
    std::mutex mutex_;
    std::vector<pthread_t> threads_;
};

// Says which kernel has polled the host's memory most, if one has done so too often.
std::string poll_report();

}  // namespace cuda_on_cpu
