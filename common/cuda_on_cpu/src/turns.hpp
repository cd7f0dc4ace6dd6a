#pragma once
// The time slices that the operating system gives a thread.

namespace cuda_on_cpu {

// Asks for short or usual time slices for the calling thread. A thread that mostly waits wants
// short ones: in return it runs as soon as what it waits for is there, although other threads
// compute. Since Linux 6.12 a thread may ask for that (sched_setattr(2): sched_runtime of
// SCHED_OTHER); on older systems nothing changes.
void take_short_turns(bool wanted);

// A core that one thread computes on. Another thread that waits there must sleep: to yield would be
// to give the core away for a whole turn. Linux tells nobody who else is on a core, so those that
// compute say so.
class ClaimedCore {
  public:
    ~ClaimedCore() { leave(); }
    // The calling thread computes from now on, on the core that it has now.
    void claim();
    // It does not any more: it waits, or has nothing to do.
    void leave();
    // Returns whether another thread of this process computes on the calling thread's core.
    static bool is_here();

  private:
    int core_ = -1;
};

}  // namespace cuda_on_cpu
