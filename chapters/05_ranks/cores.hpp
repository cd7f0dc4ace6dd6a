#pragma once
// The cores of the processor that this process may use, and which rank computes on which of them.
#include <sched.h>

#include <optional>

namespace ddp {

// Returns how many cores the process was given when it began (by taskset, a batch system or a
// container), even if the calling thread is bound to one of them.
int usable_cores();

// Binds the calling thread, and the threads that it starts, to one core until this object's end:
// core `local_rank`, counted round. A rank's threads then share one cache, and never take the core
// on which another rank computes. Does nothing unless all cores get equally many ranks, and where
// the system does not allow it.
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
