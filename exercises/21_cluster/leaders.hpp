#pragma once
// Exercise leaders: an all-reduce on two levels, in which one rank of each node speaks for all.
//
//     nodes of 2 and 1 ranks: ranks 0 1 and 2; 0 and 2 are leaders, the array has 2 chunks
//
//     round 0    1 to 0: all, add                 each rank to its leader
//     round 1    0 to 2: chunk 1, add             2 to 0: chunk 0, add       the leaders' ring:
//     round 2    0 to 2: chunk 0, replace         2 to 0: chunk 1, replace   2 (H - 1) rounds
//     round 3    0 to 1: all, replace             each leader to its node
//
// The check also tries: two to five nodes of one to four ranks. If all nodes have one rank, the
// first and the last round are left out.
#include <vector>

#include "exercises/message_plan.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Task leader_plan. Returns the messages. Ranks are numbered node after node, and a leader is the
// first rank of its node. The ring is 09_all_reduce's, with H chunks for the H leaders.
MessagePlan leader_plan(const std::vector<int>& ranks_on_node);

struct PortLoad {
    int messages;
    double bytes;
};
struct EvenNodes {
    int nodes, ranks_per_node;
    int ports;  // of each node: the rank at place i uses port i % ports
};

// Task port_load. Returns what the busiest port sends to other nodes in an all-reduce of `bytes`.
PortLoad leader_load(const EvenNodes& cluster, double bytes);  // by the plan above
PortLoad rail_load(const EvenNodes& cluster, double bytes);    // by 21_cluster's two levels

// Task divisors. Leader h divides the sum of its node by divisors[h], and nothing is divided later.
// Returns the divisors with which every rank ends with the mean of all ranks.
std::vector<double> leader_divisors(const std::vector<int>& ranks_on_node);

}  // namespace ddp
