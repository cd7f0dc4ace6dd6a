#pragma once
// The contract of the exercise halving_doubling: an all-reduce whose ranks meet in pairs, and that
// needs log2(N) steps each way where the ring needs N - 1.
#include <cstddef>

#include "06_messages/peers.hpp"
#include "06_messages/point_to_point.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Enqueues on `stream` that data[i] becomes the sum of all ranks' data[i], for i = 0, ...,
// count - 1, on every rank. Every rank calls it with its own array of `count` elements, which lies
// in its arena; any `count`, 0 too. The host does not wait. What comes behind the call on a rank's
// stream may overwrite that rank's `data`.
//
// Task powers_of_two: the number of ranks is a power of two.
// Task any_ranks: it is any number.
void halving_doubling_all_reduce(Peers& peers, float* data, std::size_t count, Stream& stream);

// Task cost. How many seconds it takes, by what a message takes, for any number of ranks: a rank
// can send to one other rank and receive from one other at the same time.
double halving_doubling_seconds(const CostModel& message, int ranks, std::size_t bytes);

}  // namespace ddp
