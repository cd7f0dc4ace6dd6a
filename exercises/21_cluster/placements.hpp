#pragma once
// The contract of the exercise placements: one ring through all ranks, and how often it leaves a
// node.
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// Rank r is on node node_of[r]; nodes are numbered from 0, and each has one or more of the N ranks.
// N is 2 or more. The ring is 09_all_reduce's, in the order of the ranks: each of the 2 (N - 1)
// steps s = 0, 1, ... sends chunk (r - 1 - s) modulo N from every rank r to rank (r + 1) modulo N.
//
// Task leaving. Returns for each node the bytes that leave it in one all-reduce. Chunk c has
// chunks[c] bytes, which may be 0.
std::vector<double> bytes_leaving(const std::vector<int>& node_of,
                                  const std::vector<double>& chunks);

// Task extremes. ranks_on_node[h] ranks, one or more, are placed on node h. Return the placement,
// node_of, with which the fewest bytes cross the network, all nodes together, and the one with
// which the most do; any of them, if several are as good. All chunks are equal.
std::vector<int> fewest_leaving(const std::vector<int>& ranks_on_node);
std::vector<int> most_leaving(const std::vector<int>& ranks_on_node);

// Task borders. The ranks are placed node after node, as many on each, and the ring stays as it is.
// Returns the sizes of the N chunks, `bytes` in all, with which the node that sends most sends
// least. There are two or more nodes.
std::vector<double> best_borders(int nodes, int ranks_per_node, double bytes);

}  // namespace ddp
