#include "tests/bench/09_all_reduce/kernel_ends.hpp"

#include <pthread.h>
#include <sys/resource.h>

#include <atomic>

#include "common/report/options.hpp"
#if !defined(DDP_CUDA)
#include "cuda_on_cpu/observe.hpp"
#endif

namespace ddp {
namespace {

std::int64_t nanoseconds_of(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Where the streams' threads find the one that notes.
std::atomic<KernelEnds*>& noting() {
    static std::atomic<KernelEnds*> one{nullptr};
    return one;
}

}  // namespace

KernelEnds::KernelEnds(std::size_t most) : ends_(most) {
#if defined(DDP_CUDA)
    throw OptionError("This bench asks the system for the threads that play a GPU: take a CPU.");
#else
    pthread_getcpuclockid(pthread_self(), &host_);
    noting() = this;
    cuda_on_cpu::observe_kernels(
        [](const cuda_on_cpu::FinishedKernel&) { noting().load()->note(); });
#endif
}

KernelEnds::~KernelEnds() {
#if !defined(DDP_CUDA)
    cuda_on_cpu::observe_kernels(nullptr);
#endif
}

void KernelEnds::note() {
    if (used_ == ends_.size())
        return;
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    ends_[used_++] = {.clock_ns = nanoseconds_of(CLOCK_MONOTONIC),
                      .own_ns = nanoseconds_of(CLOCK_THREAD_CPUTIME_ID),
                      .host_ns = nanoseconds_of(host_),
                      .sleeps = usage.ru_nvcsw,
                      .page_faults = usage.ru_minflt + usage.ru_majflt};
}

std::vector<ThreadUse> KernelEnds::between() const {
    std::vector<ThreadUse> uses;
    for (std::size_t i = 1; i < used_; i++) {
        const ThreadUse &from = ends_[i - 1], &to = ends_[i];
        uses.push_back({to.clock_ns - from.clock_ns, to.own_ns - from.own_ns,
                        to.host_ns - from.host_ns, to.sleeps - from.sleeps,
                        to.page_faults - from.page_faults});
    }
    return uses;
}

}  // namespace ddp
