#include "turns.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace cuda_on_cpu {
namespace {

// The kernel's struct sched_attr, which glibc 2.36 does not declare.
struct TurnAttributes {
    std::uint32_t size = sizeof(TurnAttributes);
    std::uint32_t policy = SCHED_OTHER;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime_ns = 0;  // of a turn; 0: the usual
    std::uint64_t deadline_ns = 0;
    std::uint64_t period_ns = 0;
};

constexpr std::uint64_t short_ns = 100'000;  // the least that Linux accepts

std::array<std::atomic<int>, CPU_SETSIZE> computing{};  // threads on each core

// Returns the calling thread's core; -1 for one that is not counted.
int this_core() {
    const int core = sched_getcpu();
    return core < CPU_SETSIZE ? core : -1;
}

}  // namespace

void take_short_turns(bool wanted) {
    TurnAttributes attributes;
    attributes.nice = getpriority(PRIO_PROCESS, 0);
    attributes.runtime_ns = wanted ? short_ns : 0;
    syscall(SYS_sched_setattr, 0, &attributes, 0u);
    // By how many nanoseconds a sleep may take longer; 0: the usual.
    prctl(PR_SET_TIMERSLACK, wanted ? 1ul : 0ul);
}

void ClaimedCore::claim() {
    if (core_ < 0 && (core_ = this_core()) >= 0)
        computing[static_cast<std::size_t>(core_)]++;
}

void ClaimedCore::leave() {
    if (core_ >= 0)
        computing[static_cast<std::size_t>(core_)]--;
    core_ = -1;
}

bool ClaimedCore::is_here() {
    const int core = this_core();
    return core >= 0 && computing[static_cast<std::size_t>(core)].load() > 0;
}

}  // namespace cuda_on_cpu
