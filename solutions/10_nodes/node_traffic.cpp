// The exercise node_traffic: what leaves a node. Read exercises/10_nodes/README.md first.
#include "exercises/10_nodes/node_traffic.hpp"

namespace ddp {

double bytes_of_one_ring(int nodes, int ranks_per_node, double bytes) {
    // stub: one_ring
    //: How many steps does the ring have, how long is a chunk, and who sends it to another node?
    const int ranks = nodes * ranks_per_node, steps = 2 * (ranks - 1);
    const double chunk = bytes / ranks;
    return nodes == 1 ? 0 : steps * chunk;
    // end stub
}

double bytes_of_two_levels(int nodes, int ranks_per_node, double bytes) {
    // stub: two_levels
    //: How many rails are there, how many ranks has each, and how many bytes does it sum?
    const double of_a_rail = bytes / ranks_per_node;
    const int steps = 2 * (nodes - 1);
    const double chunk = of_a_rail / nodes;
    return ranks_per_node * steps * chunk;
    // end stub
}

}  // namespace ddp
