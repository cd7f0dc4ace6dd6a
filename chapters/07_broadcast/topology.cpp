// The binomial tree of eight ranks with root 0, by the step in which a rank receives the data:
//
//     step 1   0 ───────────────────────────▶ 4
//     step 2   0 ────────────▶ 2              4 ────────────▶ 6
//     step 3   0 ──▶ 1         2 ──▶ 3        4 ──▶ 5         6 ──▶ 7
//
// Pairs (0 1), (2 3) ..., groups of four (0 1 2 3), (4 5 6 7), and the group of all eight: in each
// group the leader of one half serves the leader of the other.
#include "07_broadcast/topology.hpp"

#include <algorithm>

namespace ddp {

Topology linear_topology(int rank, int ranks, int root) {
    Topology topology;
    if (rank != root)
        topology.parent = root;
    else
        for (int i = 1; i < ranks; i++)
            topology.add((root + i) % ranks);
    return topology;
}

Topology tree_topology(int rank, int ranks, int root) {
    const auto leader_of = [root](int group, int size) {
        return root / size == group ? root : group * size;
    };
    Topology topology;
    // From the rank's pair up to the largest group: as long as it leads, it gains a child.
    for (int size = 1; size < ranks; size *= 2) {
        const int other_half = (rank / size) ^ 1;
        if (other_half * size >= ranks)
            continue;  // there is no such half
        const int other = leader_of(other_half, size);
        if (leader_of(rank / (2 * size), 2 * size) != rank) {
            topology.parent = other;
            break;
        }
        topology.add(other);
    }
    // The largest group first: its other half has the longest way to go.
    std::reverse(topology.child, topology.child + topology.children);
    return topology;
}

Topology chain_topology(int rank, int ranks, int root) {
    const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    Topology topology;
    if (rank != root)
        topology.parent = left;
    if (right != root)
        topology.add(right);
    return topology;
}

}  // namespace ddp
