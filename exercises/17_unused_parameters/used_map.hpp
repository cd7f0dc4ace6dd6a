#pragma once
// Exercise used_map: which bucket hangs, on which ranks, and what find_unused_parameters makes of
// it.
//
//     buckets {3, 4}, {2}, {0, 1}; backward doesn't reach parameter 2 on rank 1
//     rank 0 sends bucket 0, then 1, and waits for rank 1
//     rank 1 sends bucket 0, and never bucket 1               bucket 1 hangs, rank 1 is absent
//
//     find_unused_parameters, one parameter    rank 0    rank 1    rank 2
//     used                                     yes       no        no
//     after backward                           8         nothing   1 (old, never cleared)
//     after the step                           3         3         3
//
// The check also tries: a thousand layers with two paths into each, so visit every node once.
#include <optional>
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// A node that forward has recorded. Its inputs stand before it.
struct GraphNode {
    std::vector<int> inputs = {};  // numbers of other nodes; a parameter has none
    int parameter = -1;            // the parameter's number; -1 for an operation
    bool is_detached = false;      // backward comes to this operation, and ends there
};
using Graph = std::vector<GraphNode>;

// Task search. Returns, for each of `parameters` parameters, whether backward reaches it if the
// loss uses all of these outputs, which are nodes.
std::vector<bool> reached_parameters(const Graph& graph, const std::vector<int>& outputs,
                                     int parameters);

struct Hang {
    int bucket = -1;               // the first one that some rank never sends; -1 if there is none
    std::vector<int> absent = {};  // the ranks that never send it, in order

    bool operator==(const Hang&) const = default;
};

// Task first_hang. Returns the bucket in which the ranks wait for ever. buckets[b] lists the
// parameters of bucket b. A rank sends its buckets in order, each when it has reached all
// parameters in it: reached[rank][parameter].
Hang first_hang(const std::vector<std::vector<int>>& buckets,
                const std::vector<std::vector<bool>>& reached);

// By rank and parameter, with one element each; nothing where one is absent.
using Gradients = std::vector<std::vector<std::optional<double>>>;

// Task settle. Returns the gradients after a step with find_unused_parameters, from those after
// backward: the mean over all ranks, where an old gradient counts like any other. A parameter that
// no rank has used keeps what it has.
Gradients settled(const Gradients& gradients, const std::vector<std::vector<bool>>& used);

}  // namespace ddp
