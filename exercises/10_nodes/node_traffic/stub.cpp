// The exercise node_traffic: what leaves a node. Read exercises/10_nodes/README.md first.
#include "exercises/10_nodes/node_traffic.hpp"

#include <algorithm>
#include <numeric>

namespace ddp {

double bytes_of_ring(const std::vector<int>& node_of, double bytes) {
    // How many steps does the ring have, how long is a chunk, and who sends it to another node?
    throw NotImplemented("any_ring");
}

std::vector<int> best_ring(const std::vector<int>& node_of) {
    // How often does a ring have to leave a node?
    throw NotImplemented("best_ring");
}

}  // namespace ddp
