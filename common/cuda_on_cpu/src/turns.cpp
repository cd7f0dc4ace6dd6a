#include "turns.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

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

}  // namespace

void take_short_turns(bool wanted) {
    TurnAttributes attributes;
    attributes.nice = getpriority(PRIO_PROCESS, 0);
    attributes.runtime_ns = wanted ? short_ns : 0;
    syscall(SYS_sched_setattr, 0, &attributes, 0u);
    // By how many nanoseconds a sleep may take longer; 0: the usual.
    prctl(PR_SET_TIMERSLACK, wanted ? 1ul : 0ul);
}

}  // namespace cuda_on_cpu
