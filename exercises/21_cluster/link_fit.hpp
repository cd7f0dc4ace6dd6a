#pragma once
// Exercise link_fit: the link between nodes, from measured times of which some are wrong.
//
//     1 MB    2 MB    3 MB    4 MB      5 MB
//     12 ms   22 ms   32 ms   420 ms    52 ms      alpha = 2 ms, beta = 10 ms per MB
//
// You may call: line.seconds(bytes), std::ranges::nth_element().
// The check also tries: the shortest or the longest message disturbed; one rank per node.
#include <span>

#include "06_messages/point_to_point.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Task robust. Returns the line alpha + bytes * beta on which most of the times lie. Up to three of
// ten are too long, by any factor; the others are right to 2 %. There are ten or more, in any
// order.
CostModel robust_line(std::span<const MessageTime> times);

// Task wire. Returns how many bytes per second left each node in an all-reduce, whose bus bandwidth
// is 2 (N - 1) / N K / t on N ranks, for K bytes in t seconds. It went round one ring, node after
// node (levels = 1), or on 21_cluster's two levels (levels = 2): there 18 MB/s on two nodes of two
// ranks make 12 MB/s.
double wire_bandwidth(int nodes, int ranks_per_node, int levels, double bus_bandwidth);

struct PrintedLine {
    std::size_t bytes;  // of the array
    double bus_bandwidth;
};

// Task link. Returns the line of one message between nodes, from all-reduces on two levels, up to
// three of ten of them disturbed. Each rank has a port of its own, and within a node nothing takes
// any time.
CostModel link_of(int nodes, int ranks_per_node, std::span<const PrintedLine> lines);

}  // namespace ddp
