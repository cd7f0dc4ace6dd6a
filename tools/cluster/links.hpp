#pragma once
// The links of a cluster, measured: a message within a node and between two nodes, by its
// size, over the path that this book's all-reduces take.
#include <cstddef>
#include <vector>

#include "05_ranks/rank.hpp"
#include "06_messages/point_to_point.hpp"

namespace ddp {

// The times of messages between two ranks, which do nothing else.
struct LinkTimes {
    std::vector<MessageTime> messages;  // by size, shortest first; none: no such two ranks
    int from = 0, to = 0;               // the two ranks

    bool is_there() const { return !messages.empty(); }
    // Returns the line through the times; its beta is never 0.
    CostModel cost() const;
};
struct ClusterLinks {
    LinkTimes inside, between;
};

// Returns sizes from 64 B up to `most` bytes, four times as many from one to the next.
std::vector<std::size_t> message_sizes(std::size_t most);

// Measures messages of these sizes between two ranks of one node and between two nodes; `batches`
// of each, of which the fastest counts. All ranks call it together, and all get the same.
ClusterLinks measure_links(Rank& rank, const std::vector<std::size_t>& sizes, int batches);

}  // namespace ddp
