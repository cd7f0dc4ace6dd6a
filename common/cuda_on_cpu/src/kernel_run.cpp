#include "kernel_run.hpp"

#include <signal.h>

#include <algorithm>
#include <cmath>

#include "faults.hpp"
#include "fiber.hpp"
#include "kernel_name.hpp"

namespace cuda_on_cpu {

std::string KernelRun::name() const {
    const std::string symbol = kernel_name(kernel.function);
    return "kernel " + (symbol.empty() ? "" : symbol + ", ") + "launched at " +
           to_string(kernel.where);
}

void KernelRun::enter(pthread_t thread) {
    const Unseen bookkeeping;
    std::lock_guard lock(mutex_);
    threads_.push_back(thread);
}

void KernelRun::leave(pthread_t thread) {
    const Unseen bookkeeping;
    std::lock_guard lock(mutex_);
    threads_.erase(std::find(threads_.begin(), threads_.end(), thread));
}

void KernelRun::interrupt() {
    std::lock_guard lock(mutex_);
    for (pthread_t thread : threads_)
        pthread_kill(thread, interrupt_signal());
}

namespace {
struct MostPolls {
    std::mutex mutex;
    double rate = 2;  // of a block, in a millisecond: this is not much
    std::string report;
};
MostPolls& max_polls() {
    static auto* instance = new MostPolls;
    return *instance;
}
}  // namespace

// On an H200 one block that polls costs nothing, and 16 make a product take seven times as long.
void KernelRun::note_polls() const {
    const std::chrono::duration<double, std::milli> time =
        std::chrono::steady_clock::now() - started;
    const auto blocks = static_cast<double>(polling_blocks);
    const double rate = static_cast<double>(host_loads) / blocks / std::max(1.0, time.count());
    MostPolls& most = max_polls();
    std::lock_guard lock(most.mutex);
    if (blocks < 2 || rate <= most.rate)
        return;
    most.rate = rate;
    most.report = "cuda_on_cpu: " + std::to_string(polling_blocks) + " blocks of " + name() +
                  " polled the host's memory, each " + std::to_string(std::lround(rate)) +
                  " times a millisecond, which slows down all that a GPU computes meanwhile: let "
                  "one block poll, every 20 us, and pass on what it sees in the device's memory\n";
}

std::string poll_report() {
    std::lock_guard lock(max_polls().mutex);
    return max_polls().report;
}

}  // namespace cuda_on_cpu
