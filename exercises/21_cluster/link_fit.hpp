#pragma once
// The contract of the exercise link_fit: the link between nodes, from times of which some are
// wrong, and from what a bench has printed.
#include <span>

#include "06_messages/point_to_point.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Task robust. Returns the line alpha + bytes * beta on which most of the times lie. At most three
// in ten of them are too long, by any factor: somebody else was on the network. The others are
// right to 2 %. `times` are ten or more, each of another size, in any order.
CostModel robust_line(std::span<const MessageTime> times);

// Task wire. nccl-tests and this book's benches print the bus bandwidth of an all-reduce of K bytes
// on N ranks in t seconds: 2 (N - 1) / N K / t. This one was made on `nodes` nodes, two or more,
// with `ranks_per_node` ranks each: round one ring, node after node (levels = 1), or on two levels
// (levels = 2), as 21_cluster does it. Returns how many bytes a second left each node.
double wire_bandwidth(int nodes, int ranks_per_node, int levels, double bus_bandwidth);

// Task link. Returns the line of a message between two nodes, from all-reduces on two levels. Each
// rank has a port of its own, which a message occupies for bytes * beta seconds; it arrives alpha
// seconds after that. Within a node nothing takes any time. As above, at most three in ten of the
// lines were disturbed.
struct PrintedLine {
    std::size_t bytes;     // of the array
    double bus_bandwidth;  // in bytes a second
};
CostModel link_of(int nodes, int ranks_per_node, std::span<const PrintedLine> lines);

}  // namespace ddp
