#pragma once
// The contract of the exercise leaders: a two-level all-reduce in which one rank of each host
// speaks for the others.
#include <vector>

#include "exercises/message_plan.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Ranks are numbered host after host: host h has ranks_on_host[h] of them, one or more. The first
// rank of a host is its leader. There are two or more hosts.
//
// Task leader_plan. Returns the messages of this all-reduce:
//
//     round 0             each rank that is no leader sends its whole array to its leader
//     2 (H - 1) rounds    the H leaders sum up round a ring, as in 09_all_reduce: leader 0 sends to
//                         leader 1, and so on; the array has H chunks, and a message is one chunk
//     the last round      each leader sends the whole sum to the other ranks of its host
//
// If all hosts have one rank, the first and the last round are left out.
MessagePlan leader_plan(const std::vector<int>& ranks_on_host);

// Task port_load. What one port of a host sends to other hosts in an all-reduce of `bytes` bytes:
// the port that sends most. Every host has `ports` ports, from 1 to ranks_per_host, and the rank
// at place i of its host uses port i % ports.
struct PortLoad {
    int messages;
    double bytes;
};
struct EvenHosts {
    int hosts, ranks_per_host, ports;
};
PortLoad leader_load(const EvenHosts& cluster, double bytes);  // by the plan above
PortLoad rail_load(const EvenHosts& cluster, double bytes);    // by 21_cluster's two levels

// Task divisors. An average: before its first message to another host, the leader of host h divides
// the sum of its host by divisors[h]; nothing is divided later. Returns the divisors with which
// every rank ends with the mean of all ranks.
std::vector<double> leader_divisors(const std::vector<int>& ranks_on_host);

}  // namespace ddp
