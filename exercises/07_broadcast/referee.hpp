#pragma once
// Exercise referee: a test that tells a broadcast from something that only looks like one.
//
//     root 1              rank 0   rank 1   rank 2
//     before               1 2      3 4      5 6
//     a broadcast          3 4      3 4      3 4
//     none                 3 4      3 4      4 3
//
// You may call: the candidate, with arrays of up to 30 000 elements; peers.allocate<float>(count),
// whose array has .data(), .copy_from(vector) and .to_host_now(); peers.synchronize(stream);
// peers.rank().rank(), .world_size() and .all_gather(text).
// The check also tries: one rank, and the chapter's broadcasts, which must pass.
#include <cstddef>
#include <functional>

#include "06_messages/peers.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// A function that claims to be a broadcast. All ranks call it with the same count and root.
using Candidate =
    std::function<void(Peers& peers, float* data, std::size_t count, int root, Stream& stream)>;

// Returns whether `candidate` is a broadcast, as far as a test can tell. All ranks call it.
//
// Task values: at least one rank finds that the right elements do not arrive in the right places.
// Task same_verdict: all ranks return the same, even if only one of them sees a fault.
// Task every_size: finds faults that show only with some counts, past the end of the array, or
// when an array is used a second time.
bool is_broadcast(Peers& peers, const Candidate& candidate);

}  // namespace ddp
