#pragma once
// The contract of the exercise referee: a test that tells a broadcast from what only looks like
// one.
#include <cstddef>
#include <functional>

#include "06_messages/peers.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Something that calls itself a broadcast: it should enqueue on `stream` that the first `count`
// elements of every rank's `data`, which lies in the rank's arena, become those of rank `root`, for
// any root and any count; and touch nothing else. All ranks call it together, with the same count
// and root.
using Candidate =
    std::function<void(Peers& peers, float* data, std::size_t count, int root, Stream& stream)>;

// Whether `candidate` is a broadcast, as far as trying can tell: calls it as often as it likes,
// with arrays of its own of up to 30 000 elements; the arena has room for 100 000. All ranks call
// it together, on any number of them. A real broadcast is never refused.
//
// Task values: at least one rank says so if the right elements do not arrive in the right places.
// Task same_verdict: all ranks say the same, also where a fault shows on one of them only.
// Task every_size: faults are found that show with some counts only, behind the end of the array,
// or when an array is used a second time.
bool is_broadcast(Peers& peers, const Candidate& candidate);

}  // namespace ddp
