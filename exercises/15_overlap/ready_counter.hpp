#pragma once
// Exercise ready_counter: which buckets can be sent now? Backward's hooks ask it.
//
//     gradients 0, 1, 2, 3 lie in the buckets 1, 1, 0, 0
//
//     a hook fires     0     1     3     2
//     bucket 0 lacks   2     2     1     0
//     bucket 1 lacks   1     0     0     0
//     launched                           0, 1     bucket 1 has waited for bucket 0
//
// The check also tries: gradients in any order, buckets with one gradient, a single bucket.
#include <memory>
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// The work that must be done now.
struct Launch {
    std::vector<int> zeros;    // these gradients are set to 0 first, by ascending number
    std::vector<int> buckets;  // then these are reduced, in this order
};

// In every step each bucket is launched once, in the order 0, 1, 2, ..., and as soon as all its
// gradients and those of all earlier buckets are ready.
class ReadyCounter {
  public:
    virtual ~ReadyCounter() = default;
    virtual Launch begin_step() = 0;
    // Handles the hook of a gradient. Throws std::logic_error if it must not fire (again) in this
    // step.
    virtual Launch fire(int gradient) = 0;
    // Handles the gradients whose hooks have not fired: they become zeros, and count as ready.
    virtual Launch end_backward() = 0;
};

// Task in_order: begin_step and fire. Task unused: end_backward. A hook fires at most once in a
// step. bucket_of[g] is the bucket in which gradient g lies; no bucket is empty.
std::unique_ptr<ReadyCounter> make_ready_counter(const std::vector<int>& bucket_of);

}  // namespace ddp
