#pragma once
// The contract of the exercise used_map: from the graphs of all ranks, who hangs and where; and
// what becomes of each gradient if nobody does. All on the host, with small numbers.
#include <optional>
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// Something that a forward has recorded: a parameter, or an operation. Its inputs stand before it.
struct GraphNode {
    std::vector<int> inputs = {};  // the numbers of other nodes; a parameter has none
    int parameter = -1;            // which one this is; -1: none, an operation
    bool is_detached = false;      // backward comes to this operation, and goes no farther from it
};
using Graph = std::vector<GraphNode>;

// Task search. For each of `parameters` parameters: does a backward reach it whose loss uses all of
// these outputs? The graph may have a thousand layers, each with two ways into it: a node is looked
// at once.
std::vector<bool> reached_parameters(const Graph& graph, const std::vector<int>& outputs,
                                     int parameters);

// Where the ranks of a plain DistributedDataParallel come to wait for each other.
struct Hang {
    int bucket = -1;               // the first one that some rank never sends; -1: there is none
    std::vector<int> absent = {};  // the ranks that never send it, in order

    bool operator==(const Hang&) const = default;
};

// Task first_hang. `buckets[b]` lists the parameters of bucket b; each rank sends its buckets
// strictly in order, and each when backward has reached all that is in it.
// `reached[rank][parameter]` is what the search has found.
Hang first_hang(const std::vector<std::vector<int>>& buckets,
                const std::vector<std::vector<bool>>& reached);

// Task settle. A gradient, of one element, by rank and parameter; nothing where it is absent.
using Gradients = std::vector<std::vector<std::optional<double>>>;

// What the gradients are after a step with find_unused_parameters. `gradients` are those after
// backward; one that is there though `used[rank][parameter]` is false is an old one that nobody has
// cleared, and is added like any other. A parameter that no rank has used is as it was.
Gradients settled(const Gradients& gradients, const std::vector<std::vector<bool>>& used);

}  // namespace ddp
