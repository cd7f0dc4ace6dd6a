#include "07_broadcast/route.hpp"

#include <algorithm>
#include <stdexcept>

namespace ddp {

Route linear_route(int rank, int ranks, int root) {
    Route route;
    if (rank != root)
        route.parent = root;
    else
        for (int i = 1; i < ranks; i++)
            route.add((root + i) % ranks);
    return route;
}

Route tree_route(int rank, int ranks, int root) {
    const auto leader_of = [root](int group, int size) {
        return root / size == group ? root : group * size;
    };
    Route route;
    for (int size = 1; size < ranks; size *= 2) {
        const int other_half = (rank / size) ^ 1;
        if (other_half * size >= ranks)
            continue;
        const int other = leader_of(other_half, size);
        if (leader_of(rank / (2 * size), 2 * size) != rank) {
            route.parent = other;
            break;
        }
        route.add(other);
    }
    std::reverse(route.child, route.child + route.children);
    return route;
}

Route chain_route(int rank, int ranks, int root) {
    const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    Route route;
    if (rank != root)
        route.parent = left;
    if (right != root)
        route.add(right);
    return route;
}

void require_route(Peers& peers, int root, const std::string& operation) {
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
