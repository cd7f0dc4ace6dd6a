#include "05_ranks/cores.hpp"

#include <algorithm>
#include <thread>

namespace ddp {
namespace {

// Returns the cores on which the calling thread may run; none if the system does not tell.
cpu_set_t cores_of_thread() {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof cores, &cores) != 0)
        CPU_ZERO(&cores);
    return cores;
}

const cpu_set_t cores_at_start = cores_of_thread();  // before any rank is bound

// Returns the usable core before which there are `turns` others.
int core_after(int turns) {
    int core = 0;
    while (!CPU_ISSET(core, &cores_at_start) || turns-- > 0)
        core++;
    return core;
}

}  // namespace

int usable_cores() {
    const int counted = CPU_COUNT(&cores_at_start);
    return counted > 0 ? counted
                       : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

CoreBinding::CoreBinding(int local_rank, int local_world_size) {
    const int cores = CPU_COUNT(&cores_at_start);
    if (cores < 2 || local_world_size % cores != 0)
        return;
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(core_after(local_rank % cores), &core);
    const cpu_set_t before = cores_of_thread();
    if (sched_setaffinity(0, sizeof core, &core) == 0)
        before_ = before;
}

CoreBinding::~CoreBinding() {
    if (before_)
        sched_setaffinity(0, sizeof *before_, &*before_);
}

}  // namespace ddp
