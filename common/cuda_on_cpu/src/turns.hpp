#pragma once
// How long the operating system lets a thread run before others that share its core have their
// turn.

namespace cuda_on_cpu {

// Of the calling thread. One that mostly waits wants short turns: in return it may begin as soon as
// what it waits for is there, though others compute. Since Linux 6.12 a thread may ask for that
// (sched_setattr(2): sched_runtime of SCHED_OTHER); where it may not, nothing changes.
void take_short_turns(bool wanted);

}  // namespace cuda_on_cpu
