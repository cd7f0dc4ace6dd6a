#pragma once
// How data gets from one rank to all: everyone has it from one other rank, and passes it on to
// some.
#include <string>

#include "06_messages/peers.hpp"

namespace ddp {

// One rank's place among the others.
struct Topology {
    int parent = -1;             // whom it has the data from; none at the root
    int children = 0;            // how many it passes it on to,
    int child[most_peers] = {};  // in this order

    void add(int rank) { child[children++] = rank; }
};

// The root gives it to each of the others: root + 1 first, and so on round to root - 1.
Topology linear_topology(int rank, int ranks, int root);

// A binomial tree: whoever has the data passes it on, so that in every step twice as many have it.
// Neighbours 2 i and 2 i + 1 make a pair, neighbouring pairs a group of four, and so on; the root
// stands for each group that it is in, the first rank for any other one. Who stands for a group
// gives the data to who stands for the other half, of its largest group first.
Topology tree_topology(int rank, int ranks, int root);

// Each to the next: root, root + 1, and so on round to root - 1.
Topology chain_topology(int rank, int ranks, int root);

// Throws std::invalid_argument, naming `operation`, if there is no rank `root`, or if kernels do
// not reach all ranks.
void require_reachable(Peers& peers, int root, const std::string& operation);

}  // namespace ddp
