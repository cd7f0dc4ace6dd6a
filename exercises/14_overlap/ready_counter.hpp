#pragma once
// The contract of the exercise ready_counter: the part of DDP's reducer that counts. It is told
// what backward's hooks see, and says what is to be sent when.
#include <memory>
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// What is to be done now.
struct Launch {
    std::vector<int> zeros;    // these gradients are set to 0 first, by number
    std::vector<int> buckets;  // then these are reduced, in this order
};

// Of a step: begin_step, fire for each gradient that backward has computed, end_backward. In every
// step each bucket is launched once, in the order 0, 1, 2, ..., and as soon as all gradients of it
// and of those before it are ready.
class ReadyCounter {
  public:
    virtual ~ReadyCounter() = default;
    virtual Launch begin_step() = 0;
    // The hook of a gradient. Throws std::logic_error if it must not come (any more) in this step.
    virtual Launch fire(int gradient) = 0;
    // What has not fired is not used in this step: it is set to 0, by ascending number, and counts
    // as ready.
    virtual Launch end_backward() = 0;
};

// Task in_order: begin_step and fire. Task unused: end_backward. A hook fires at most once in a
// step. bucket_of[g] is the bucket in which gradient g lies; no bucket is empty.
std::unique_ptr<ReadyCounter> make_ready_counter(const std::vector<int>& bucket_of);

// Task static_graph. Every step is as the first one. A hook may fire several times in a step, and
// the gradient is ready when it has done so for the last time. In the first step nobody knows which
// time is the last: its buckets are launched by end_backward. In the later ones
//  - a gradient is ready when its hook has fired as often as in the first step;
//  - those that did not fire then are set to 0, and ready, as soon as the step begins;
//  - fire throws if a hook fires more often than then, and end_backward throws std::logic_error if
//    one has fired less often.
std::unique_ptr<ReadyCounter> make_static_graph_counter(const std::vector<int>& bucket_of);

}  // namespace ddp
