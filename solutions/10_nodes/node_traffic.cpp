// The exercise node_traffic: what leaves a node. Read exercises/10_nodes/README.md first.
#include "exercises/10_nodes/node_traffic.hpp"

#include <algorithm>
#include <numeric>

namespace ddp {

double bytes_of_ring(const std::vector<int>& node_of, double bytes) {
    // stub: any_ring
    //: How many steps does the ring have, how long is a chunk, and who sends it to another node?
    const std::size_t ranks = node_of.size(), steps = 2 * (ranks - 1);
    std::vector<int> leaving(ranks);  // by node: how many of its ranks send to another node
    for (std::size_t i = 0; i < ranks; i++)
        if (node_of[i] != node_of[(i + 1) % ranks])
            leaving[static_cast<std::size_t>(node_of[i])]++;
    const double chunk = bytes / static_cast<double>(ranks);
    const int senders = *std::ranges::max_element(leaving);
    return static_cast<double>(steps) * chunk * senders;
    // end stub
}

std::vector<int> best_ring(const std::vector<int>& node_of) {
    // stub: best_ring
    //: How often does a ring have to leave a node?
    std::vector<int> ring(node_of.size());
    std::iota(ring.begin(), ring.end(), 0);
    std::ranges::stable_sort(ring, {}, [&](int rank) { return node_of.at(rank); });
    return ring;
    // end stub
}

}  // namespace ddp
