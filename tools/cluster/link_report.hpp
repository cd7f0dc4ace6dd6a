#pragma once
// The tables of `./book cluster measure`: the links, and how much of the link between two
// nodes an all-reduce uses.
#include <string>
#include <vector>

#include "10_nodes/show/order_report.hpp"
#include "common/report/csv.hpp"
#include "tools/cluster/links.hpp"

namespace ddp {

// Returns the share of the link that an all-reduce uses: the seconds that the bytes which leave a
// node take at the bandwidth of `link`, by those that were measured.
double share_of_link(const OrderMeasurement& measurement, const CostModel& link);

// Prints the links, and writes what the simulator reads (measured/own_files.hpp) to `file`.
std::vector<std::string> link_columns();
void report_links(const ClusterLinks& links, CsvWriter& file);

// Prints all-reduces beside the time that their bytes need on the link between nodes, and writes
// them to `file`.
std::vector<std::string> link_use_columns();
void report_link_use(const std::string& nodes, const std::vector<OrderMeasurement>& measurements,
                     const CostModel& link, CsvWriter& file);

}  // namespace ddp
