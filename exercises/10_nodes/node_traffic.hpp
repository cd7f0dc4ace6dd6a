#pragma once
// Exercise node_traffic: the bytes that leave each node in an all-reduce.
//
//     2 nodes of 2 ranks, an array of 4 MB        one ring      6 MB
//                                                 two levels    4 MB
//
// The check also tries: nodes with one rank, where both are the same, and a single node.
#include "exercises/not_implemented.hpp"

namespace ddp {

// Task one_ring. All ranks form one ring, node after node, as in 09_all_reduce.
double bytes_of_one_ring(int nodes, int ranks_per_node, double bytes);

// Task two_levels. The ranks of a node first sum among themselves, then along the rails.
double bytes_of_two_levels(int nodes, int ranks_per_node, double bytes);

}  // namespace ddp
