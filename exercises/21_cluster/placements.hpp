#pragma once
// The contract of the exercise placements: one ring through all ranks, and how often it leaves a
// host.
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// Rank r is on host host_of[r]; hosts are numbered from 0, and each has one or more of the N ranks.
// N is 2 or more. The ring is 09_all_reduce's, in the order of the ranks: each of the 2 (N - 1)
// steps s = 0, 1, ... sends chunk (r - 1 - s) modulo N from every rank r to rank (r + 1) modulo N.
//
// Task leaving. Returns for each host the bytes that leave it in one all-reduce. Chunk c has
// chunks[c] bytes, which may be 0.
std::vector<double> bytes_leaving(const std::vector<int>& host_of,
                                  const std::vector<double>& chunks);

// Task extremes. ranks_on_host[h] ranks, one or more, are placed on host h. Return the placement,
// host_of, with which the fewest bytes cross the network, all hosts together, and the one with
// which the most do; any of them, if several are as good. All chunks are equal.
std::vector<int> fewest_leaving(const std::vector<int>& ranks_on_host);
std::vector<int> most_leaving(const std::vector<int>& ranks_on_host);

// Task borders. The ranks are placed host after host, as many on each, and the ring stays as it is.
// Returns the sizes of the N chunks, `bytes` in all, with which the host that sends most sends
// least. There are two or more hosts.
std::vector<double> best_borders(int hosts, int ranks_per_host, double bytes);

}  // namespace ddp
