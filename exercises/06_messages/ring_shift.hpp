#pragma once
// The contract of the exercise ring_shift: every rank sends to one rank and receives from another,
// and nobody waits for ever.
#include <cstddef>

#include "06_messages/peers.hpp"
#include "06_messages/point_to_point.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Enqueues on `stream` that what rank r has in `data` arrives in `received` of rank r + distance,
// counted round: after N - 1 comes 0. Every rank calls it with the same `count` and `distance`, and
// with two arrays of `count` elements of its own that do not overlap; `data` lies in its arena, and
// stays as it is. By peers.send() and peers.receive(), each of which ends when the other rank has
// come; any number of ranks, 1 too. The host does not wait.
//
// Task neighbours: `distance` is 1.
// Task any_distance: it is any number, 0, negative and larger than N too; and no rank waits longer
// than three messages take one after the other, however many ranks there are.
void ring_shift(Peers& peers, const float* data, float* received, std::size_t count, int distance,
                Stream& stream);

// Task cost. How many seconds it takes until the last rank has what it should, by what a message
// takes.
double ring_shift_seconds(const CostModel& message, int ranks, int distance, std::size_t bytes);

}  // namespace ddp
