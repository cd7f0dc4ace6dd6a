#pragma once
// The contract of the exercise used_map: from the graphs of all ranks, find the bucket that hangs
// and the ranks that cause it; and compute the gradients if find_unused_parameters is on.
// Everything is on the host, with small numbers.
#include <optional>
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// A node that forward has recorded: a parameter or an operation. Its inputs stand before it. A
// parameter has one node at most.
struct GraphNode {
    std::vector<int> inputs = {};  // numbers of other nodes; a parameter has none
    int parameter = -1;            // the parameter's number; -1 for an operation
    bool is_detached = false;      // backward comes to this operation, and ends there
};
using Graph = std::vector<GraphNode>;

// Task search. Returns, for each of `parameters` parameters, whether backward reaches it if the
// loss uses all of these outputs. The graph may have a thousand layers, with two paths into each:
// visit every node once.
std::vector<bool> reached_parameters(const Graph& graph, const std::vector<int>& outputs,
                                     int parameters);

// The bucket in which the ranks of a plain DistributedDataParallel wait for ever.
struct Hang {
    int bucket = -1;               // the first one that some rank never sends; -1 if there is none
    std::vector<int> absent = {};  // the ranks that never send it, in order

    bool operator==(const Hang&) const = default;
};

// Task first_hang. Returns the first bucket that hangs. `buckets[b]` lists the parameters of bucket
// b. Each rank sends its buckets strictly in order, each when backward has reached all parameters
// in it. `reached[rank][parameter]` is the result of the search.
Hang first_hang(const std::vector<std::vector<int>>& buckets,
                const std::vector<std::vector<bool>>& reached);

// Task settle. Gradients of one element each, by rank and parameter; nothing where one is absent.
using Gradients = std::vector<std::vector<std::optional<double>>>;

// Returns the gradients after a step with find_unused_parameters. `gradients` are those after
// backward. A gradient that is there although `used[rank][parameter]` is false is an old one that
// was never cleared; it is added like any other. The gradients of a parameter that no rank has used
// stay as they are.
Gradients settled(const Gradients& gradients, const std::vector<std::vector<bool>>& used);

}  // namespace ddp
