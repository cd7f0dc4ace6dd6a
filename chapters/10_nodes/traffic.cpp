// Two nodes of two ranks, one ring, and what rank 1 sends to rank 2 (the only rank of node 0 that
// sends to another node): in each of 2 (N - 1) = 6 steps a chunk of K / 4.
//
//         node 0              node 1
//     ┌─▶ rank 0 ─▶ rank 1 ─────▶ rank 2 ─▶ rank 3 ─┐        6 x K / 4 = 1.5 K
//     └─────────────────────────────────────────────┘
//
// Two levels: a ring of two nodes for each rail, each with one half of the array. In each of
// 2 (H - 1) = 2 steps rank 0 and rank 1 send a chunk of K / 4 each.
//
//         rank 0 ◀───────▶ rank 2                             2 x K / 4
//         rank 1 ◀───────▶ rank 3                           + 2 x K / 4 = K
#include "10_nodes/traffic.hpp"

namespace ddp {

double bytes_leaving_node(const Placement& placement, int levels, std::size_t bytes) {
    const bool is_two_level = uses_two_levels(placement, levels);
    const std::size_t length =
        is_two_level ? placement.sizes.size() : placement.by_node.size();  // of a ring
    const double rings_per_node = is_two_level ? placement.sizes[0] : 1;
    if (placement.sizes.size() == 1)
        return 0;
    const double steps = 2 * (static_cast<double>(length) - 1);
    const double chunk = static_cast<double>(bytes) / static_cast<double>(placement.by_node.size());
    return steps * chunk * rings_per_node;
}

}  // namespace ddp
