#pragma once
// One ring against two levels: the bits of the same sum, the bytes that leave a node, and the time.
#include <cstddef>
#include <optional>
#include <vector>

#include "05_ranks/rank.hpp"
#include "10_nodes/communicator/node_order.hpp"
#include "common/report/csv.hpp"

namespace ddp {

// An all-reduce of one size in one order.
struct OrderMeasurement {
    std::size_t bytes = 0;
    int levels = 1;
    std::string bits;            // of the result, on every rank
    double expected_bytes = 0;   // that leave a node
    double measured_bytes = -1;  // the same, by the interface of the node that sent most; -1: not
                                 // on a network
    std::string interface;       // of that node
    double seconds = 0;          // of the slowest rank, the median of several
};

// Measures an all-reduce of each size (in bytes, of floats) in both orders, on nodes that are
// there, or on those that `shape` pretends. All ranks call it, and all get the same.
std::vector<OrderMeasurement> measure_orders(Rank& rank, const std::vector<std::size_t>& sizes,
                                             const std::optional<NodeShape>& shape, int rounds);

// Prints a table, and writes the rows to `file`, whose header is order_columns().
std::vector<std::string> order_columns();
void report_orders(const std::string& nodes, const std::vector<OrderMeasurement>& measurements,
                   CsvWriter& file);

}  // namespace ddp
