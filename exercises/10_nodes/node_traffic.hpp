#pragma once
// Exercise node_traffic: what a ring puts on the network, and the ring that puts least there.
//
//     the ranks of the ring are on nodes    0 0 1 1    of 4 MB each node sends  6 MB
//                                           0 1 0 1                            12 MB
//
// The check also tries: a single node, one rank per node, nodes with different numbers of ranks.
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// Task any_ring. Rank i of a ring is on node node_of[i], and sends to rank i + 1, the last rank to
// the first. Returns the bytes that leave the node which sends most, in an all-reduce of `bytes`.
double bytes_of_ring(const std::vector<int>& node_of, double bytes);

// Task best_ring. Rank r is on node node_of[r]. Returns the ranks in the order of a ring from which
// every node sends as little as it can. The nodes are numbered 0, 1, 2, ..., in any order.
std::vector<int> best_ring(const std::vector<int>& node_of);

}  // namespace ddp
