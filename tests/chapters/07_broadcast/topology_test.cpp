// The topologies by themselves: every rank is reached, in as many steps as the book says.
#include "07_broadcast/topology.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <vector>

#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using MakeTopology = std::function<Topology(int, int, int)>;

std::vector<Topology> all_ranks(const MakeTopology& make, int ranks, int root) {
    std::vector<Topology> topologies;
    for (int rank = 0; rank < ranks; rank++)
        topologies.push_back(make(rank, ranks, root));
    return topologies;
}

// Returns the step in which each rank has the data, if a rank serves one other in each step.
std::vector<int> steps_of(const std::vector<Topology>& topologies, int root) {
    std::vector<int> steps(topologies.size(), -1);
    const std::function<void(int, int)> reach = [&](int rank, int step) {
        REQUIRE(steps[static_cast<std::size_t>(rank)] == -1);  // no rank gets it twice
        steps[static_cast<std::size_t>(rank)] = step;
        const Topology& topology = topologies[static_cast<std::size_t>(rank)];
        for (int i = 0; i < topology.children; i++) {
            REQUIRE(topologies[static_cast<std::size_t>(topology.child[i])].parent == rank);
            reach(topology.child[i], step + i + 1);
        }
    };
    REQUIRE(topologies[static_cast<std::size_t>(root)].parent == -1);
    reach(root, 0);
    REQUIRE(std::ranges::count(steps, -1) == 0);
    return steps;
}

int last_step(const MakeTopology& make, int ranks, int root) {
    return std::ranges::max(steps_of(all_ranks(make, ranks, root), root));
}

}  // namespace

TEST_CASE("every topology reaches every rank once, in the expected number of steps") {
    for (int ranks = 1; ranks <= 20; ranks++)
        for (int root = 0; root < ranks; root++) {
            CAPTURE(ranks, root);
            REQUIRE(last_step(linear_topology, ranks, root) == ranks - 1);
            REQUIRE(last_step(chain_topology, ranks, root) == ranks - 1);
            REQUIRE(last_step(tree_topology, ranks, root) ==
                    static_cast<int>(std::bit_width(static_cast<unsigned int>(ranks - 1))));
        }
    REQUIRE(last_step(tree_topology, max_peers, 17) == 6);
}

TEST_CASE("linear and chain begin at the root and go round") {
    const Topology root = linear_topology(3, 5, 3);
    REQUIRE(std::vector<int>(root.child, root.child + root.children) ==
            std::vector<int>{4, 0, 1, 2});
    REQUIRE(linear_topology(1, 5, 3).parent == 3);
    REQUIRE(chain_topology(0, 5, 3).parent == 4);
    REQUIRE(chain_topology(0, 5, 3).child[0] == 1);
    REQUIRE(chain_topology(2, 5, 3).children == 0);
    REQUIRE(chain_topology(0, 1, 0).children == 0);
    REQUIRE(chain_topology(0, 1, 0).parent == -1);
}

TEST_CASE("in a tree groups of neighbours double, whatever the root") {
    const auto children = [](int rank, int ranks, int root) {
        const Topology topology = tree_topology(rank, ranks, root);
        return std::vector<int>(topology.child, topology.child + topology.children);
    };
    REQUIRE(children(0, 8, 0) == std::vector<int>{4, 2, 1});
    REQUIRE(children(4, 8, 0) == std::vector<int>{6, 5});
    REQUIRE(children(5, 8, 5) == std::vector<int>{0, 6, 4});
    REQUIRE(children(0, 8, 5) == std::vector<int>{2, 1});
    REQUIRE(tree_topology(4, 8, 5).parent == 5);
    REQUIRE(tree_topology(7, 8, 5).parent == 6);
    REQUIRE(children(0, 5, 0) == std::vector<int>{4, 2, 1});
    REQUIRE(children(4, 5, 4) == std::vector<int>{0});
    REQUIRE(children(2, 6, 4) == std::vector<int>{3});
}

}  // namespace ddp::test
