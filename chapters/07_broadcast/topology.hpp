#pragma once
// The paths by which data gets from one rank to all: every rank receives it from one parent, and
// passes it on to its children.
#include "06_messages/control.hpp"

namespace ddp {

// A rank's neighbours in a broadcast.
struct Topology {
    int parent = -1;            // the rank that it receives the data from; -1 at the root
    int children = 0;           // number of ranks that it passes the data on to
    int child[max_peers] = {};  // these ranks, in the order in which they are served

    void add(int rank) { child[children++] = rank; }
};

// Returns a star: the root serves each of the others, root + 1 first, and so on to root - 1.
Topology linear_topology(int rank, int ranks, int root);

// Returns a binomial tree: every rank that has the data passes it on, so in each step twice as many
// ranks have it. Neighbours 2 i and 2 i + 1 make a pair, neighbouring pairs a group of four, and so
// on. The leader of a group is the root if it is in it, and its first rank otherwise. A leader
// serves the leader of the other half of each group that it leads, of the largest group first.
Topology tree_topology(int rank, int ranks, int root);

// Returns a chain: root, root + 1, and so on to root - 1.
Topology chain_topology(int rank, int ranks, int root);

}  // namespace ddp
