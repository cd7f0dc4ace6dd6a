#pragma once
// The time slices that the operating system gives a thread.

namespace cuda_on_cpu {

// Asks for short or usual time slices for the calling thread. A thread that mostly waits wants
// short ones: in return it runs as soon as what it waits for is there, although other threads
// compute. Since Linux 6.12 a thread may ask for that (sched_setattr(2): sched_runtime of
// SCHED_OTHER); on older systems nothing changes.
void take_short_turns(bool wanted);

}  // namespace cuda_on_cpu
