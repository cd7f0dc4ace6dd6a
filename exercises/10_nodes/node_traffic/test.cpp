// The exercise node_traffic: the reader's bytes beside those of the chapter's traffic.cpp, and the
// cause of a wrong number, where it tells one.
#include "exercises/10_nodes/node_traffic.hpp"

#include <cmath>

#include "10_nodes/traffic.hpp"
#include "common/report/units.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Formula = double (*)(int nodes, int ranks_per_node, double bytes);

struct Cause {
    double bytes;  // what a reader says who makes this mistake
    std::string hint;
};

void check(Formula formula, int levels, const NodeShape& shape, const std::vector<Cause>& causes,
           std::string hint) {
    constexpr std::size_t bytes = 1'200'000;
    Job job;
    job.members.resize(static_cast<std::size_t>(shape.ranks()));
    const Placement placement = placement_of(Group::all(job), job, 0, shape);
    const double right = bytes_leaving_node(placement, levels, bytes);
    const double yours = formula(shape.nodes, shape.ranks_per_node, bytes);
    const auto is_yours = [&](double number) { return std::abs(yours - number) <= 1e-6 * bytes; };
    if (is_yours(right))
        return held();
    for (const Cause& cause : causes)
        if (is_yours(cause.bytes)) {
            hint = cause.hint;
            break;
        }
    throw Wrong(placement.text() + ", an array of 1200000 bytes: you say that " +
                format_fixed(yours, 0) + " bytes leave a node, right is " + format_fixed(right, 0) +
                ".\n" + hint);
}

const std::string one_way =
    "That is one time round. The sums grow round the ring, and then they go round to all ranks.";
const std::string whole_number =
    "In C++ 2 * (n - 1) / n of an int n has no digits behind the point. Multiply by the bytes "
    "first.";
const std::string a_single_node = "The case: a single node, and nothing leaves it.";

void check_one_ring() {
    const double bytes = 1'200'000;
    check(bytes_of_one_ring, 1, {3, 4},
          {{bytes * 22 / 12 * 4,
            "Does every rank send to another node? Round the ring, only the last rank of a node "
            "does."},
           {bytes * 11 / 12, one_way},
           {bytes, whole_number},
           {bytes * 4 / 3, "The ring passes through all ranks, and not only once through a node."}},
          "How many steps does a ring of 12 ranks have, and how long is a chunk?");
    check(bytes_of_one_ring, 1, {2, 8}, {}, "How many steps does a ring of 16 ranks have?");
    check(bytes_of_one_ring, 1, {4, 1}, {}, "The case: four nodes with one rank each.");
    check(bytes_of_one_ring, 1, {1, 4}, {}, a_single_node);
}

void check_two_levels() {
    const double bytes = 1'200'000;
    check(bytes_of_two_levels, 2, {3, 4},
          {{bytes / 3, "That is what one rail sends. How many ranks of a node have a rail?"},
           {bytes * 16 / 3, "That is a whole array for each rail. How much of it does a rail sum?"},
           {bytes * 2 / 3, one_way},
           {bytes, whole_number},
           {bytes * 22 / 12, "That is one ring of all ranks. A rail has one rank of each node."}},
          "How many steps does a rail of 3 ranks have, and how long is a chunk of its part?");
    check(bytes_of_two_levels, 2, {2, 8}, {}, "How many steps does a rail of 2 ranks have?");
    check(bytes_of_two_levels, 2, {4, 1}, {}, "The case: one rail, which is a ring of all ranks.");
    check(bytes_of_two_levels, 2, {1, 4}, {}, a_single_node);
}

}  // namespace

std::vector<Task> tasks() {
    return {{"one_ring", check_one_ring}, {"two_levels", check_two_levels}};
}

}  // namespace ddp::test
