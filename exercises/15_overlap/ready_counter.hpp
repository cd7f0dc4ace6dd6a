#pragma once
// The contract of the exercise ready_counter: the counting in DDP's reducer. It is called by
// backward's hooks, and returns what must be sent when.
#include <memory>
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// The work that must be done now.
struct Launch {
    std::vector<int> zeros;    // these gradients are set to 0 first, by number
    std::vector<int> buckets;  // then these are reduced, in this order
};

// A step calls begin_step, fire for each gradient that backward has computed, and end_backward. In
// every step each bucket is launched once, in the order 0, 1, 2, ..., and as soon as all its
// gradients and those of all earlier buckets are ready.
class ReadyCounter {
  public:
    virtual ~ReadyCounter() = default;
    virtual Launch begin_step() = 0;
    // Handles the hook of a gradient. Throws std::logic_error if the hook must not fire (again)
    // in this step.
    virtual Launch fire(int gradient) = 0;
    // Handles the gradients whose hooks have not fired: they are not used in this step, are set to
    // 0 by ascending number, and count as ready.
    virtual Launch end_backward() = 0;
};

// Task in_order: begin_step and fire. Task unused: end_backward. A hook fires at most once in a
// step. bucket_of[g] is the bucket in which gradient g lies; no bucket is empty. The vector may
// change after the call.
std::unique_ptr<ReadyCounter> make_ready_counter(const std::vector<int>& bucket_of);

// Task static_graph. Every step is like the first one. A hook may fire several times in a step, and
// the gradient is ready when it has fired for the last time. In the first step it is not known
// which time is the last: the buckets are launched by end_backward. In the later steps
//  - a gradient is ready when its hook has fired as often as in the first step;
//  - those that did not fire then are set to 0, and ready, as soon as the step begins;
//  - fire throws std::logic_error if a hook fires more often than then.
std::unique_ptr<ReadyCounter> make_static_graph_counter(const std::vector<int>& bucket_of);

}  // namespace ddp
