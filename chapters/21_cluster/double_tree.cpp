// The double tree, the only schedule whose ranks have different parts. Two nodes of two ranks:
//
//     one half     1 ▶ 0   3 ▶ 2, then 2 ▶ 0    up, and down again the same way
//     the other    1 ▶ 0   3 ▶ 2, then 0 ▶ 2
#include <algorithm>

#include "21_cluster/simulated_all_reduce.hpp"

namespace ddp::simulator {
namespace {

// Up a chain on each node and a tree of nodes, then back down. The nodes of the tree are numbered
// 0, 1, 2 ... from left to right, with 0 on top: odd numbers are leaves, their parents are on level
// 2, and so on. The other tree renumbers the nodes so that odd ones become even.
Rounds tree(const Cluster& cluster, double bytes, bool is_other) {
    const int nodes = cluster.nodes, local = cluster.ranks_per_node;
    const auto number_of = [=](int node) {  // its own inverse
        return !is_other ? node : nodes % 2 == 0 ? nodes - 1 - node : (nodes - node) % nodes;
    };
    Rounds rounds;
    for (int place = local - 1; place > 0; place--)
        rounds.push_back(
            {.partner = [=](int rank) { return rank % local == place ? rank - 1 : -1; },
             .bytes = bytes});
    for (int level = 1; level < nodes; level *= 2) {
        const auto parent = [=](int rank) {
            const int number = number_of(rank / local);
            if (rank % local != 0 || (number & -number) != level)
                return -1;
            const int left = number - level, above = left | 2 * level;
            return local * number_of(above < nodes ? above : left);
        };
        rounds.push_back({.partner = parent, .bytes = bytes});
    }
    for (std::size_t i = rounds.size(); i-- > 0;)
        rounds.push_back({.partner = rounds[i].partner, .bytes = bytes, .reversed = true});
    return rounds;
}

}  // namespace

// Two trees, each with half of the data. Leaves of one are inner nodes of the other, so all ports
// are busy both ways (Sanders, Speck, Träff, "Two-tree algorithms for full bandwidth broadcast,
// reduction and scan", Parallel Computing 2009).
Schedule double_tree(const Cluster& cluster, double bytes) {
    const int copies = cluster.copies();
    const double half = bytes / copies / 2;
    const int slices = std::clamp(static_cast<int>(half / (1 << 15)), 1, 64);
    const double slice = half / slices;
    // A slice of both trees passes a port 4 (H - 1) / H times, on average.
    const double pace_s = 4.0 * (cluster.nodes - 1) / cluster.nodes * cluster.between.busy_s(slice);
    return {.parts = {tree(cluster, slice, false), tree(cluster, slice, true)},
            .slices = slices,
            .pace_s = pace_s,
            .copies = copies};
}

}  // namespace ddp::simulator
