#pragma once
// Exercise scatter_gather: a broadcast that deals the array out in chunks, one for each rank, and
// then lets the ranks pass the chunks on in a ring.
//
//     chunks a b c       rank 0   rank 1   rank 2
//     before             abc
//     scatter            abc       b         c       the root sends to one rank after the other
//     ring, step 1       abc      ab        bc       each rank reads from the left what its
//     ring, step 2       abc      abc       abc      neighbour got in the step before
//
// You may call: broadcast_call(), launch_collective(), shape_of_transfer(); in the kernel
// begin_collective(), end_block(), handshake(), slice_of(), block_share(), copy_by_block(),
// view.data_of(), offsets_of(), and a Neighbour's post(), consume(), ack() and wait_for_ack();
// message.seconds(bytes), the time of one message.
// The check also tries: one rank, up to eight; no elements, fewer than ranks, numbers that do not
// divide.
#include <cstddef>

#include "06_messages/peers.hpp"
#include "06_messages/point_to_point.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Copies rank `root`'s data[0 .. count) to all ranks; each has an array of its own in its arena.
//
// Task root_0: `root` is 0.
// Task any_root: it is any rank.
void scatter_gather_broadcast(Peers& peers, float* data, std::size_t count, int root,
                              Stream& stream);

// Task cost. Returns the seconds until the last rank has all `bytes`. A rank can send to one rank
// and receive from another at the same time.
double scatter_gather_seconds(const CostModel& message, int ranks, std::size_t bytes);

}  // namespace ddp
