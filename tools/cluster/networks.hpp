#pragma once
// The network between the nodes of a job: the one that a node's name leads to, and the one that its
// bytes take.
//
//     node a ─ its name leads to eth0 ─ its bytes left by docker0      the wrong network
#include <cstdint>
#include <string>
#include <vector>

#include "05_ranks/rank.hpp"
#include "05_ranks/support/interfaces.hpp"
#include "10_nodes/communicator/node_order.hpp"

namespace ddp {

// A node, and what its interfaces have sent in one all-reduce.
struct NodeNetwork {
    std::string node;
    std::string address;        // that its name has on another node; empty: none
    std::string interface;      // that has this address; empty: none
    std::uint64_t sent = 0;     // by that interface
    Traffic most;               // by the one that has sent most
    double expected_bytes = 0;  // that must have left the node
};

// Returns a sentence about a node whose bytes went over another network than the one that its name
// leads to, or over none that the kernel counts; "" if all is well.
std::string wrong_network(const NodeNetwork& network);

inline constexpr std::size_t watched_bytes = 1 << 20;  // of the all-reduce that is watched

// Makes a small all-reduce in this order, and asks the interfaces: one entry for each node, none if
// there is only one. All ranks call it together, and all get the same.
std::vector<NodeNetwork> watch_network(Rank& rank, const AllReduceOrder& order);

}  // namespace ddp
