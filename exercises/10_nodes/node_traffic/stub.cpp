// The exercise node_traffic: what leaves a node. Read exercises/10_nodes/README.md first.
#include "exercises/10_nodes/node_traffic.hpp"

namespace ddp {

double bytes_of_one_ring(int nodes, int ranks_per_node, double bytes) {
    // How many steps does the ring have, how long is a chunk, and who sends it to another node?
    throw NotImplemented("one_ring");
}

double bytes_of_two_levels(int nodes, int ranks_per_node, double bytes) {
    // How many rails are there, how many ranks has each, and how many bytes does it sum?
    throw NotImplemented("two_levels");
}

}  // namespace ddp
