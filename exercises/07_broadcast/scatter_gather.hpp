#pragma once
// The contract of the exercise scatter_gather: a broadcast that cuts the data into one chunk for
// each rank, deals the chunks out, and lets the ranks pass them on in a ring.
#include <cstddef>

#include "06_messages/peers.hpp"
#include "06_messages/point_to_point.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Enqueues on `stream` a copy of rank `root`'s data[i], i = 0, ..., count - 1, into every rank's
// data[i]. Every rank calls it with its own array of `count` elements in its arena. `count` may be
// anything, including 0, and so may the number of ranks. The host does not wait. Work that a rank
// enqueues on its stream after the call may overwrite that rank's `data`: no rank may end before
// all have read what they need of it. Where ranks do not pass the same count, begin_collective()
// returns false, and every thread of the kernel has to end.
//
// Task root_0: `root` is 0.
// Task any_root: `root` is any rank.
void scatter_gather_broadcast(Peers& peers, float* data, std::size_t count, int root,
                              Stream& stream);

// Task cost. Returns the seconds from the start until the last rank has all `bytes`, where a
// message of n bytes takes message.seconds(n), and a rank can send to one rank and receive from
// another at the same time.
double scatter_gather_seconds(const CostModel& message, int ranks, std::size_t bytes);

}  // namespace ddp
