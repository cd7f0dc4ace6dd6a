#pragma once
// The order in which an all-reduce between nodes sums: round one ring of all ranks, or on two
// levels, within each node first. A program that lets its reader choose has one of these:
//
//     AllReduceOrder order;
//     order.add_to(options);          --shape 2x2, --levels 1
//     ...
//     order.require(world.job());     or it would sum in another order, without a word
//     make_communicator("native", rank, bytes, {.order = order});
#include <optional>
#include <string>

#include "05_ranks/job.hpp"
#include "common/report/options.hpp"

namespace ddp {

// The nodes of --shape, which a job on one machine pretends to have: the first ranks_per_node ranks
// are on the first of them, and so on.
struct NodeShape {
    int nodes = 1, ranks_per_node = 1;

    int ranks() const { return nodes * ranks_per_node; }
    std::string text() const {
        return std::to_string(nodes) + "x" + std::to_string(ranks_per_node);
    }
    // Throws OptionError if `job` cannot have this shape.
    void require(const Job& job) const;
};

struct AllReduceOrder {
    int levels = 2;
    std::optional<NodeShape> shape = std::nullopt;

    // Adds --shape and --levels, which are read into this: it must outlive the call of parse(). A
    // shape also says how many ranks there are, unless something else does.
    void add_to(Options& parser);
    // Throws OptionError if `job` cannot have the shape.
    void require(const Job& job) const {
        if (shape)
            shape->require(job);
    }
};

}  // namespace ddp
