#pragma once
// The contract of the exercise leaders: a two-level all-reduce in which one rank of each node
// speaks for the others.
#include <vector>

#include "exercises/message_plan.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Ranks are numbered node after node: node h has ranks_on_node[h] of them, one or more. The first
// rank of a node is its leader. There are two or more nodes.
//
// Task leader_plan. Returns the messages of this all-reduce:
//
//     round 0             each rank that is no leader sends its whole array to its leader
//     2 (H - 1) rounds    the H leaders sum up round a ring, as in 09_all_reduce: leader 0 sends to
//                         leader 1, and so on; the array has H chunks, and a message is one chunk,
//                         whichever of them the ring begins with
//     the last round      each leader sends the whole sum to the other ranks of its node
//
// If all nodes have one rank, the first and the last round are left out.
MessagePlan leader_plan(const std::vector<int>& ranks_on_node);

// Task port_load. What one port of a node sends to other nodes in an all-reduce of `bytes` bytes:
// the port that sends most. Every node has `ports` ports, from 1 to ranks_per_node, and the rank
// at place i of its node uses port i % ports.
struct PortLoad {
    int messages;
    double bytes;
};
struct EvenNodes {
    int nodes, ranks_per_node, ports;
};
PortLoad leader_load(const EvenNodes& cluster, double bytes);  // by the plan above
PortLoad rail_load(const EvenNodes& cluster, double bytes);    // by 21_cluster's two levels

// Task divisors. An average: before its first message to another node, the leader of node h divides
// the sum of its node by divisors[h]; nothing is divided later. Returns the divisors with which
// every rank ends with the mean of all ranks.
std::vector<double> leader_divisors(const std::vector<int>& ranks_on_node);

}  // namespace ddp
