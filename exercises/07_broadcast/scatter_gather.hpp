#pragma once
// The contract of the exercise scatter_gather: a broadcast that cuts the data into one chunk for
// each rank, deals the chunks out, and lets the ranks pass them on in a ring.
#include <cstddef>

#include "06_messages/peers.hpp"
#include "06_messages/point_to_point.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Enqueues on `stream` that every rank's data[i], i = 0, ..., count - 1, becomes that of rank
// `root`. Every rank calls it with its own array of `count` elements, which lies in its arena; any
// `count`, 0 too; any number of ranks. The host does not wait. What comes behind the call on a
// rank's stream may overwrite that rank's `data`.
//
// Task root_0: `root` is 0.
// Task any_root: it is any rank.
void scatter_gather_broadcast(Peers& peers, float* data, std::size_t count, int root,
                              Stream& stream);

// Task cost. How many seconds it takes from the start until the last rank has all `bytes`, by what
// a message takes: a rank can send to one other rank and receive from one other at the same time.
double scatter_gather_seconds(const CostModel& message, int ranks, std::size_t bytes);

}  // namespace ddp
