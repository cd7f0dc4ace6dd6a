// Which node has which ranks. Six ranks, dealt out in turn (mpirun --map-by node):
//
//     rank            0  1  2  3  4  5
//     node            a  b  a  b  a  b
//     nodes           a  b                 in the order of their first ranks
//     by_node         0  2  4  1  3  5     node after node: the ring
//     sizes           3  3                 ranks of each node: as many on both, so there are rails
//     rails           0-1  2-3  4-5        ranks with one place on their nodes
#include "10_nodes/placement.hpp"

#include <algorithm>
#include <iterator>

namespace ddp {
namespace {

// Returns the node of the rank at `index`: its name, or its number in the shape.
std::string node_at(int index, const Group& group, const Job& job,
                    const std::optional<NodeShape>& shape) {
    if (shape)
        return std::to_string(group.rank(index) / shape->ranks_per_node);
    return job.members[static_cast<std::size_t>(group.rank(index))].node;
}

}  // namespace

bool Placement::is_even() const {
    return std::ranges::count(sizes, sizes[0]) == static_cast<std::ptrdiff_t>(sizes.size());
}

// From a rank's number in the job to its index in the group, and from there to its place.
int Placement::position_of(int number) const {
    const auto index = std::ranges::find(numbers, number) - numbers.begin();
    return static_cast<int>(std::ranges::find(by_node, index) - by_node.begin());
}

// Round the ring: a distance below 0 goes the other way.
int Placement::ahead(int distance) const {
    const int ranks = static_cast<int>(by_node.size());
    const int index = by_node[static_cast<std::size_t>((position + distance + ranks) % ranks)];
    return numbers[static_cast<std::size_t>(index)];
}

// Says the sizes in words. One number is enough where all nodes are alike.
std::string Placement::text() const {
    const auto ranks = [](int number) {
        return std::to_string(number) + (number == 1 ? " rank" : " ranks");
    };
    if (is_even())
        return std::to_string(sizes.size()) + (sizes.size() == 1 ? " node of " : " nodes of ") +
               ranks(sizes[0]);
    std::string text = "nodes of ";
    for (std::size_t i = 0; i + 1 < sizes.size(); i++)
        text += std::to_string(sizes[i]) + (i + 2 < sizes.size() ? ", " : " and ");
    return text + ranks(sizes.back());
}

std::vector<int> ranks_on_node(const Group& group, const Job& job, int number) {
    const auto node = [&](int rank) { return job.members[static_cast<std::size_t>(rank)].node; };
    std::vector<int> local;  // this rank is one of them
    std::ranges::copy_if(group.ranks(), std::back_inserter(local),
                         [&](int rank) { return node(rank) == node(number); });
    return local;
}

// Rails need nodes of one size; and with one rank a node, the one ring is the rail.
bool uses_two_levels(const Placement& placement, int levels) {
    return levels == 2 && placement.is_even() && placement.sizes.size() > 1 &&
           placement.sizes[0] > 1;
}

std::string order_line(const Job& job, const AllReduceOrder& order) {
    const Placement placement = placement_of(Group::all(job), job, 0, order.shape);
    if (placement.sizes.size() == 1)
        return "";
    if (uses_two_levels(placement, order.levels))
        return "sums between nodes: on two levels, " + placement.text() + "\n";
    return "sums between nodes: round one ring, " + placement.text() +
           (placement.is_even() ? "" : " (two levels take nodes of one size)") + "\n";
}

Placement placement_of(const Group& group, const Job& job, int rank,
                       const std::optional<NodeShape>& shape) {
    if (shape)
        shape->require(job);
    // The nodes, and then the ranks of each.
    std::vector<std::string> nodes;  // in the order of their first ranks
    for (int i = 0; i < group.size(); i++)
        if (const std::string node = node_at(i, group, job, shape);
            std::ranges::count(nodes, node) == 0)
            nodes.push_back(node);
    // By node, and within a node by rank.
    Placement placement;
    placement.numbers = group.ranks();
    for (const std::string& node : nodes) {
        const std::size_t before = placement.by_node.size();
        for (int i = 0; i < group.size(); i++)
            if (node_at(i, group, job, shape) == node)
                placement.by_node.push_back(i);
        placement.sizes.push_back(static_cast<int>(placement.by_node.size() - before));
    }
    // The simulated nodes share one memory, where the ranks of each must be neighbours.
    if (shape && !std::ranges::is_sorted(placement.by_node))
        throw OptionError("--shape " + shape->text() +
                          " takes groups that name their ranks node after node: leave it out.");
    placement.position = placement.position_of(rank);
    return placement;
}

}  // namespace ddp
