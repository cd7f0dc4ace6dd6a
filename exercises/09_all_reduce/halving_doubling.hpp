#pragma once
// Exercise halving_doubling: an all-reduce in pairs, with log2(N) steps each way where the ring has
// N - 1.
//
//     the sums that each rank has to go on with, of an array in four quarters a b c d
//
//                             rank 0   rank 1   rank 2   rank 3
//     begin                    abcd     abcd     abcd     abcd
//     halving, distance 2      ab       ab         cd       cd     0 with 2, 1 with 3
//     halving, distance 1      a         b         c         d     0 with 1, 2 with 3
//     doubling, distance 1     ab       ab         cd       cd
//     doubling, distance 2     abcd     abcd     abcd     abcd
//
// You may call: element_type<float>(), launch_collective(), shape_of_transfer(); in the kernel
// begin_collective(), end_block(), block_share(), view.data_of(), and a Neighbour's post(),
// consume(), ack() and wait_for_ack().
// The check also tries: one rank; no elements, and numbers that do not divide.
#include <cstddef>

#include "06_messages/peers.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// All-reduces data[0 .. count) in place: it becomes the sum of all ranks' arrays.
//
// Task powers_of_two: the number of ranks is a power of two.
// Task any_ranks: it is any number.
void halving_doubling_all_reduce(Peers& peers, float* data, std::size_t count, Stream& stream);

}  // namespace ddp
