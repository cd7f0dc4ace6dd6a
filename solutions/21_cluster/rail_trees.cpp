// The exercise rail_trees: fewer rounds between nodes. Read exercises/21_cluster/README.md first.
#include "exercises/21_cluster/rail_trees.hpp"

#include <algorithm>

namespace ddp {
namespace {

// stub
//: Functions that make the rounds of your plan go here.
using Messages = std::vector<PlannedMessage>;

// Returns the round in which the ranks of each node exchange chunks. Rank i adds up all chunks i,
// or it sends the one that it has.
Messages within_nodes(int nodes, int ranks_per_node, Arrival arrival) {
    Messages messages;
    for (int from = 0; from < nodes * ranks_per_node; from++) {
        const int first = from / ranks_per_node * ranks_per_node;
        for (int to = first; to < first + ranks_per_node; to++)
            if (to != from) {
                const int owner = arrival == Arrival::add ? to : from;
                messages.push_back({from, to, owner % ranks_per_node, 1, arrival});
            }
    }
    return messages;
}

// Returns the round in which the odd multiples of `distance` send to their parents.
Messages up_the_trees(int nodes, int ranks_per_node, int distance) {
    Messages messages;
    for (int rail = 0; rail < ranks_per_node; rail++) {
        const auto rank_of = [=](int vertex) {
            return (vertex + rail) % nodes * ranks_per_node + rail;
        };
        for (int vertex = distance; vertex < nodes; vertex += 2 * distance)
            messages.push_back(
                {rank_of(vertex), rank_of(vertex - distance), rail, 1, Arrival::add});
    }
    return messages;
}

Messages backwards(Messages messages) {
    for (PlannedMessage& message : messages) {
        std::swap(message.from, message.to);
        message.arrival = Arrival::replace;
    }
    return messages;
}

int rounds_up(int nodes) {
    int rounds = 0;
    while (1 << rounds < nodes)
        rounds++;
    return rounds;
}
// end stub

}  // namespace

MessagePlan rail_tree_plan(int nodes, int ranks_per_node) {
    // stub: tree_plan
    //: Four kinds of rounds. Begin with one rank a node: there are only the trees.
    MessagePlan plan{ranks_per_node, {}};
    if (ranks_per_node > 1)
        plan.rounds.push_back(within_nodes(nodes, ranks_per_node, Arrival::add));
    for (int k = 0; k < rounds_up(nodes); k++)
        plan.rounds.push_back(up_the_trees(nodes, ranks_per_node, 1 << k));
    for (int k = rounds_up(nodes) - 1; k >= 0; k--)
        plan.rounds.push_back(backwards(up_the_trees(nodes, ranks_per_node, 1 << k)));
    if (ranks_per_node > 1)
        plan.rounds.push_back(within_nodes(nodes, ranks_per_node, Arrival::replace));
    return plan;
    // end stub
}

double trees_are_faster_up_to(const CostModel& message, int nodes, int ranks_per_node) {
    // stub: crossover
    //: How many rounds has each of the two, and how many bytes does a message have?
    const double up = rounds_up(nodes), ring = nodes - 1;
    const double fewer_latencies = (ring - up) * message.alpha_s;
    const double more_bytes = (up - ring / nodes) / ranks_per_node;  // for each byte of the array
    return fewer_latencies / (more_bytes * message.beta_s_per_byte);
    // end stub
}

}  // namespace ddp
