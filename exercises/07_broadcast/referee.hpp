#pragma once
// The contract of the exercise referee: a test that tells a broadcast from something that only
// looks like one.
#include <cstddef>
#include <functional>

#include "06_messages/peers.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// A function that claims to be a broadcast. It should enqueue work on `stream` that overwrites the
// first `count` elements of every rank's `data`, which lies in the rank's arena, with those of rank
// `root`, for any root and any count, and touches nothing else. All ranks call it with the same
// count and root.
using Candidate =
    std::function<void(Peers& peers, float* data, std::size_t count, int root, Stream& stream)>;

// Returns whether `candidate` is a broadcast, as far as a test can tell. Calls it as often as
// needed, with arrays of its own of up to 30 000 elements; the arena has room for 100 000. All
// ranks call this function, for any number of ranks. It must return true for every correct
// broadcast.
//
// Task values: returns false on at least one rank if the right elements do not arrive in the right
// places.
// Task same_verdict: returns the same on all ranks, even if a fault shows on one of them only.
// Task every_size: finds faults that show with some counts only, behind the end of the array, or
// when an array is used a second time.
bool is_broadcast(Peers& peers, const Candidate& candidate);

}  // namespace ddp
