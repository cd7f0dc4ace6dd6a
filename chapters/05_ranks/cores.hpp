#pragma once
// The cores of the processor that this process may use, and who computes on which.
#include <sched.h>

#include <optional>

namespace ddp {

// As many as the process was given when it began (by taskset, a batch system or a container), even
// if the calling thread keeps to one of them.
int usable_cores();

// While it lives, the calling thread and those that it starts keep to one core, in turn by local
// rank: what mpirun calls binding. A rank's threads then share one cache, and never take the core
// on which another rank computes. Only where that leaves all cores with as many ranks; otherwise,
// or where the system does not allow it, nothing changes.
class CoreBinding {
  public:
    CoreBinding(int local_rank, int local_world_size);
    ~CoreBinding();
    CoreBinding(const CoreBinding&) = delete;
    CoreBinding& operator=(const CoreBinding&) = delete;

  private:
    std::optional<cpu_set_t> before_;  // the thread's cores
};

}  // namespace ddp
