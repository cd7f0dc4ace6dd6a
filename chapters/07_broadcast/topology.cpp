#include "07_broadcast/topology.hpp"

#include <algorithm>
#include <stdexcept>

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
    for (int size = 1; size < ranks; size *= 2) {
        const int other_half = (rank / size) ^ 1;
        if (other_half * size >= ranks)
            continue;
        const int other = leader_of(other_half, size);
        if (leader_of(rank / (2 * size), 2 * size) != rank) {
            topology.parent = other;
            break;
        }
        topology.add(other);
    }
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

void require_reachable(Peers& peers, int root, const std::string& operation) {
    const PeersView& view = peers.view();
    if (root < 0 || root >= view.world_size)
        throw std::invalid_argument(operation + ": there is no rank " + std::to_string(root) +
                                    "; the root is one of 0 to " +
                                    std::to_string(view.world_size - 1));
    for (int r = 0; r < view.world_size; r++)
        if (view.control[r] == nullptr)
            throw std::invalid_argument(
                operation + ": rank " + std::to_string(r) + " is on another host (" +
                peers.rank().job().members[static_cast<std::size_t>(r)].host +
                "), where kernels cannot reach");
}

}  // namespace ddp
