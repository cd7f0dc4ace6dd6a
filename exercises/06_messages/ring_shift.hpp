#pragma once
// Exercise ring_shift: every rank passes its array to the next one, and no rank waits for ever.
//
//     before   rank 0: a   rank 1: b   rank 2: c
//     after    rank 0: c   rank 1: a   rank 2: b
//
// You may call: peers.send(data, count, to, stream) and peers.receive(received, count, from,
// stream), each of which ends when the other rank has made its own call; peers.rank().rank() and
// .world_size(); cudaMemcpyAsync(); message.seconds(bytes), the time of one message.
// The check also tries: one rank, which keeps what it has, up to twelve; an empty array.
#include <cstddef>

#include "06_messages/peers.hpp"
#include "06_messages/point_to_point.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Task neighbours. Copies `data` of rank r to `received` of rank r + 1, and of the last rank to
// that of rank 0. All ranks call it with the same `count`; their arrays do not overlap.
void ring_shift(Peers& peers, const float* data, float* received, std::size_t count,
                Stream& stream);

// Task cost. Returns the seconds that your ring_shift takes. They must not be more than those of
// three messages, however many ranks there are.
double ring_shift_seconds(const CostModel& message, int ranks, std::size_t bytes);

}  // namespace ddp
