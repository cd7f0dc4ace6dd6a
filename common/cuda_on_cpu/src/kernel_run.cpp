#include "kernel_run.hpp"

#include <signal.h>

#include <algorithm>

#include "faults.hpp"
#include "fiber.hpp"
#include "kernel_name.hpp"

namespace cuda_on_cpu {

std::string KernelRun::name() const {
    const std::string symbol = kernel_name(kernel.function);
    return "kernel " + (symbol.empty() ? "" : symbol + ", ") + "launched at " +
           text_of(kernel.where);
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

}  // namespace cuda_on_cpu
