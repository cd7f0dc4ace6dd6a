#pragma once
// Exercise placements: one ring through all ranks, and how often it leaves a node.
//
//     4 ranks, chunks of 25 bytes      node_of {0, 0, 1, 1}    150 bytes leave each node
//                                      node_of {0, 1, 0, 1}    300 bytes
//
// In step s = 0, ..., 2 (N - 1) - 1 of 09_all_reduce's ring every rank r sends chunk (r - 1 - s)
// modulo N to rank (r + 1) modulo N.
// The check also tries: one node, nodes of different sizes, empty chunks.
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// Task leaving. Returns for each node the bytes that leave it in one all-reduce. Rank r is on node
// node_of[r], and chunk c has chunks[c] bytes.
std::vector<double> bytes_leaving(const std::vector<int>& node_of,
                                  const std::vector<double>& chunks);

// Task extremes. Return a placement of ranks_on_node[h] ranks on each node h, with which the fewest
// bytes cross the network, or the most. All chunks are equal.
std::vector<int> fewest_leaving(const std::vector<int>& ranks_on_node);
std::vector<int> most_leaving(const std::vector<int>& ranks_on_node);

// Task borders. Returns the sizes of the N chunks, `bytes` in all, with which the busiest node
// sends least. Ranks are placed node after node, on two or more nodes.
std::vector<double> best_borders(int nodes, int ranks_per_node, double bytes);

}  // namespace ddp
