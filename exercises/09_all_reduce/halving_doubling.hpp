#pragma once
// The contract of the exercise halving_doubling: an all-reduce in which the ranks work in pairs. It
// needs log2(N) steps each way where the ring needs N - 1.
#include <cstddef>

#include "06_messages/peers.hpp"
#include "06_messages/point_to_point.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Enqueues on `stream` an all-reduce in place: data[i] becomes the sum of all ranks' data[i], for
// i = 0, ..., count - 1, on every rank. Every rank calls it with its own array of `count` elements
// in its arena. `count` may be anything, including 0. The host does not wait. Work that a rank
// enqueues on its stream after the call may overwrite that rank's `data`.
//
// Task powers_of_two: the number of ranks is a power of two.
// Task any_ranks: the number of ranks is any number.
void halving_doubling_all_reduce(Peers& peers, float* data, std::size_t count, Stream& stream);

// Task cost. Returns the seconds that it takes for any number of ranks, where a message of n bytes
// takes message.seconds(n), and a rank can send to one rank and receive from another at the same
// time.
double halving_doubling_seconds(const CostModel& message, int ranks, std::size_t bytes);

}  // namespace ddp
