// The exercise placements: where should ranks be? Read exercises/21_cluster/README.md first.
#include "exercises/21_cluster/placements.hpp"

#include <algorithm>
#include <numeric>

namespace ddp {

std::vector<double> bytes_leaving(const std::vector<int>& node_of,
                                  const std::vector<double>& chunks) {
    // Which ranks send to another node? Which chunks do they send?
    throw NotImplemented("leaving");
}

std::vector<int> fewest_leaving(const std::vector<int>& ranks_on_node) {
    throw NotImplemented("extremes");
}

std::vector<int> most_leaving(const std::vector<int>& ranks_on_node) {
    // Two neighbours should never be on the same node, if that can be.
    throw NotImplemented("extremes");
}

std::vector<double> best_borders(int nodes, int ranks_per_node, double bytes) {
    // Which chunks does the last rank of a node not send, or only once?
    throw NotImplemented("borders");
}

}  // namespace ddp
