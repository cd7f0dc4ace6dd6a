#pragma once
// Where the ranks of a group are: which node has which of them, and the order in which a ring
// passes through them.
#include <optional>
#include <string>
#include <vector>

#include "09_all_reduce/support/group.hpp"
#include "10_nodes/communicator/node_order.hpp"

namespace ddp {

// The largest number of ranks of a communicator over nodes.
inline constexpr int max_ranks_over_nodes = 1024;

// A group of ranks by nodes.
//
//     rank        0   1   2   3   4   5
//     node        a   b   a   b   a   b        dealt out in turn, as by mpirun --map-by node
//     by_node     0   2   4   1   3   5        a ring in this order leaves each node once
struct Placement {
    std::vector<int> by_node;  // indices: node after node, in the order of their first ranks
    std::vector<int> sizes;    // of the nodes, in ranks
    int position = 0;          // this rank's, in by_node
    std::vector<int> numbers;  // of the ranks in the job, by index

    // Returns whether all nodes have the same number of ranks. Only then are there rails: rank l of
    // every node is on rail l.
    bool is_even() const;
    int nodes() const { return static_cast<int>(sizes.size()); }
    int node() const { return position / sizes[0]; }
    int local_rank() const { return position % sizes[0]; }
    // Returns the position of rank `number`.
    int position_of(int number) const;
    // Returns the number of the rank that is `distance` ranks ahead in the ring of all, or
    // `distance` nodes ahead on the same rail.
    int ahead(int distance) const;
    int on_rail(int distance) const { return ahead(distance * sizes[0]); }
    // Returns the words for the sizes: "2 nodes of 4 ranks", "nodes of 3 and 1 ranks".
    std::string text() const;
};

// Returns the placement of `group`, as rank number `rank` sees it. With a `shape` of H x L the
// ranks 0 to L - 1 of the job are on the first node, and so on, wherever they are. Throws
// OptionError if the job cannot have the shape, or if a group with a shape does not name its ranks
// node after node.
Placement placement_of(const Group& group, const Job& job, int rank,
                       const std::optional<NodeShape>& shape);

// Returns the numbers of the members of `group` that are on the same machine as rank `number`, in
// the group's order. Their kernels share memory.
std::vector<int> ranks_on_node(const Group& group, const Job& job, int number);

// Returns whether an all-reduce uses two levels: `levels` says so, and all nodes have the same
// number of ranks, more than one.
bool uses_two_levels(const Placement& placement, int levels);

// Returns a line that says how a communicator of all ranks with this order sums between nodes; ""
// if there is only one node.
std::string order_line(const Job& job, const AllReduceOrder& order);

}  // namespace ddp
