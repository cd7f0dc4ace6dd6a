#pragma once
// Exercise staleness_gate: a gate that lets no thread run more than `bound` steps ahead.
//
//     bound 2            steps done
//     worker 0   |###           3
//     worker 1   |#####         5     may begin: 2 ahead of the slowest
//     worker 2   |######        6     waits until worker 0 has done its fourth
//     worker 3   |##            has left: no worker waits for it
//
// You may call: std::mutex, std::unique_lock, and of a std::condition_variable wait_for() and
// notify_all().
// The check also tries: a bound of 0, one worker, a patience of 0, a worker that is woken too
// early.
#include <chrono>
#include <memory>

#include "exercises/not_implemented.hpp"

namespace ddp {

// Each worker is a thread, and calls begin_step and end_step in turn. The calls of different
// workers can overlap.
class WaitingGate {
  public:
    virtual ~WaitingGate() = default;

    // Task bound. Waits, asleep, until the worker has done at most `bound` steps more than the
    // slowest worker that has not left. Returns true then, and false if `patience` is over before.
    virtual bool begin_step(int worker, std::chrono::milliseconds patience) = 0;
    // Task bound. Records that the worker has done its step, and wakes every worker that can go on.
    virtual void end_step(int worker) = 0;

    // Task leaving. Removes a worker that has ended, or was lost in the middle of a step. It makes
    // no more calls, and no other worker waits for it.
    virtual void leave(int worker) = 0;
};

// Returns a gate for workers 0, ..., workers - 1, which have done no step.
std::unique_ptr<WaitingGate> make_staleness_gate(int workers, int bound);

}  // namespace ddp
