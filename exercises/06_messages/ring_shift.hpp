#pragma once
// The contract of the exercise ring_shift: every rank sends to one rank and receives from another,
// and no rank waits for ever.
#include <cstddef>

#include "06_messages/peers.hpp"
#include "06_messages/point_to_point.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Copies `data` of rank r to `received` of rank r + distance, counted round: after N - 1 comes 0.
// Every rank calls it with the same `count` and `distance`, and with two arrays of its own, of
// `count` elements each, that do not overlap. `data` lies in the rank's arena, and is not changed.
// Use peers.send() and peers.receive() on `stream`: each ends when the other rank has made its own
// call. There are one or more ranks.
//
// Task neighbours: `distance` is 1.
// Task any_distance: it is any number, including 0, negative ones and those above N. No rank waits
// longer than three messages take, one after the other, however many ranks there are.
void ring_shift(Peers& peers, const float* data, float* received, std::size_t count, int distance,
                Stream& stream);

// Task cost. Returns the seconds until every rank has its data by your ring_shift, where `message`
// gives the time of one message.
double ring_shift_seconds(const CostModel& message, int ranks, int distance, std::size_t bytes);

}  // namespace ddp
