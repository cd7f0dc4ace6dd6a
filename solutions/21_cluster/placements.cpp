// The exercise placements: where should ranks be? Read exercises/21_cluster/README.md first.
#include "exercises/21_cluster/placements.hpp"

#include <algorithm>
#include <numeric>

namespace ddp {

std::vector<double> bytes_leaving(const std::vector<int>& node_of,
                                  const std::vector<double>& chunks) {
    // stub: leaving
    //: Which ranks send to another node? Which chunks do they send?
    const std::size_t ranks = node_of.size();
    const double all = std::accumulate(chunks.begin(), chunks.end(), 0.0);
    std::vector<double> leaving(static_cast<std::size_t>(*std::ranges::max_element(node_of)) + 1);
    for (std::size_t rank = 0; rank < ranks; rank++) {
        const std::size_t next = (rank + 1) % ranks;
        if (node_of[rank] != node_of[next])
            leaving[static_cast<std::size_t>(node_of[rank])] +=
                2 * all - chunks[rank] - chunks[next];
    }
    return leaving;
    // end stub
}

std::vector<int> fewest_leaving(const std::vector<int>& ranks_on_node) {
    // stub: extremes
    std::vector<int> node_of;
    for (std::size_t node = 0; node < ranks_on_node.size(); node++)
        node_of.insert(node_of.end(), static_cast<std::size_t>(ranks_on_node[node]),
                       static_cast<int>(node));
    return node_of;
    // end stub
}

std::vector<int> most_leaving(const std::vector<int>& ranks_on_node) {
    // stub: extremes
    //: Two neighbours should never be on the same node, if that can be.
    std::vector<std::size_t> nodes(ranks_on_node.size());
    std::iota(nodes.begin(), nodes.end(), std::size_t{0});
    std::ranges::stable_sort(nodes, std::ranges::greater{},
                             [&](std::size_t node) { return ranks_on_node[node]; });
    std::vector<int> node_of(
        static_cast<std::size_t>(std::accumulate(ranks_on_node.begin(), ranks_on_node.end(), 0)));
    std::size_t place = 0;  // 0, 2, 4, ..., and then 1, 3, 5, ...
    for (const std::size_t node : nodes)
        for (int i = 0; i < ranks_on_node[node]; i++) {
            node_of[place] = static_cast<int>(node);
            place = place + 2 < node_of.size() ? place + 2 : 1;
        }
    return node_of;
    // end stub
}

std::vector<double> best_borders(int nodes, int ranks_per_node, double bytes) {
    // stub: borders
    //: Which chunks does the last rank of a node not send, or only once?
    std::vector<double> chunks(static_cast<std::size_t>(nodes * ranks_per_node));
    for (int node = 0; node < nodes; node++)
        chunks[static_cast<std::size_t>((node + 1) * ranks_per_node - 1)] = bytes / nodes;
    return chunks;
    // end stub
}

}  // namespace ddp
