#pragma once
// The contract of the exercise staleness_gate: a gate that keeps every worker within `bound` steps
// of the slowest. The chapter's StalenessGate is called by one server, and never waits. Here there
// is no server: each worker is a thread, calls the WaitingGate itself, and waits inside the call.
#include <chrono>
#include <memory>

#include "exercises/not_implemented.hpp"

namespace ddp {

// Workers are numbered from 0, and have done no step at first. Each worker calls begin_step and
// end_step in turn. Calls of different workers may overlap.
class WaitingGate {
  public:
    virtual ~WaitingGate() = default;

    // Task bound. Waits until the worker may begin its next step: until it has done at most `bound`
    // steps more than the slowest worker that has not left. Returns true then, and false if
    // `patience` (0 or more, from the call on) is over before. Whoever waits sleeps, and is
    // woken. After false the worker may call again.
    virtual bool begin_step(int worker, std::chrono::milliseconds patience) = 0;
    // Task bound. Records that the worker has done its step. Every worker that may go on now is
    // woken at once.
    virtual void end_step(int worker) = 0;

    // Task leaving. Removes the worker for good: it has ended, or was lost in the middle of a step,
    // and makes no more calls. From now on no other worker waits for it.
    virtual void leave(int worker) = 0;
};

// Returns a gate for workers 0, ..., workers - 1. `bound` is 0 or more.
std::unique_ptr<WaitingGate> make_staleness_gate(int workers, int bound);

// Task seconds. Both functions return the seconds after which every worker but worker 0 has done
// `steps` steps. Each of their steps takes `step_s` seconds.
//
// Worker 0 is as fast as the others, but pauses for `pause_s` seconds in its first step. `steps` is
// larger than bound + 1.
double seconds_with_pause(int steps, int bound, double step_s, double pause_s);
// Each step of worker 0 takes `times` as long (1 or more). Worker 0 goes on when the others have
// ended.
double seconds_with_slow(int steps, int bound, double step_s, double times);

}  // namespace ddp
