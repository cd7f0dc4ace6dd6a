#pragma once
// The contract of the exercise tree_by_hand: a broadcast made of messages.
#include <cstddef>

#include "06_messages/peers.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Enqueues work that copies the root's data[0 .. count) to all ranks. All call it together, with
// the same `count` and `root`, and each with an array of its own, which lies in the rank's arena.
//
//     6 ranks, root 0:    0 > 4    then    0 > 2    then    0 > 1   2 > 3   4 > 5
//
// Task arrives: root is 0.
// Task tree: root is 0, and it takes no longer than ceil(log2 N) messages, one after the other.
// Task from_anywhere: root is any rank.
// You may call: peers.send() and peers.receive(), peers.rank().rank(), peers.rank().world_size().
// The check also tries: one rank, no elements, numbers of ranks that are no power of two.
void broadcast_by_tree(Peers& peers, float* data, std::size_t count, int root, Stream& stream);

}  // namespace ddp
