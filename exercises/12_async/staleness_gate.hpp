#pragma once
// The contract of the exercise staleness_gate: a gate through which workers go, each a thread, and
// behind which nobody is more than `bound` steps ahead of the slowest. The chapter's StalenessGate
// is asked by one server; here nobody serves, and who has to wait waits in the call.
#include <chrono>
#include <memory>

#include "exercises/not_implemented.hpp"

namespace ddp {

// Workers 0, ..., workers - 1 have done no step. Each calls begin_step and end_step in turn; calls
// of different workers may come at the same time.
class WaitingGate {
  public:
    virtual ~WaitingGate() = default;

    // Task bound. True as soon as the worker may begin its next step: when it has done at most
    // `bound` steps more than the slowest worker that is still there. False if it still may not
    // after `patience`, which may be 0; then it may call again.
    virtual bool begin_step(int worker, std::chrono::milliseconds patience) = 0;
    // Task bound. The worker has done its step. Whoever may go on now does so at once.
    virtual void end_step(int worker) = 0;

    // Task leaving. The worker will not come again: it has ended, or was lost in the middle of a
    // step. From now on nobody waits for it.
    virtual void leave(int worker) = 0;
};

// `bound` is 0 or more.
std::unique_ptr<WaitingGate> make_staleness_gate(int workers, int bound);

// Task seconds. Worker 0 is slow, and a step of every other worker takes `step_s` seconds. After
// how many seconds have those others done `steps` steps?
// ... where worker 0 is as fast as they are, but pauses for `pause_s` in its first step. `steps`
// are more than bound + 1.
double seconds_with_pause(int steps, int bound, double step_s, double pause_s);
// ... where each of worker 0's steps takes `times` as long, 1 or more, and it goes on when the
// others have ended.
double seconds_with_slow(int steps, int bound, double step_s, double times);

}  // namespace ddp
