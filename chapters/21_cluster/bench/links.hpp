#pragma once
// The links of a cluster: a message within a host and between two hosts, by its size,
// over the path that this book's all-reduces take; and how much of the link an all-reduce uses.
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "05_ranks/rank.hpp"
#include "06_messages/point_to_point.hpp"
#include "10_nodes/show/order_report.hpp"
#include "common/report/csv.hpp"

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

// Measures messages of these sizes between two ranks of one host and between two hosts; `batches`
// of each, of which the fastest counts. All ranks call it together, and all get the same.
ClusterLinks measure_links(Rank& rank, const std::vector<std::size_t>& sizes, int batches);

// Returns the share of the link that an all-reduce uses: the seconds that the bytes which leave a
// host take at the bandwidth of `link`, by those that were measured.
double share_of_link(const OrderMeasurement& measurement, const CostModel& link);

// Prints the links, and writes what the simulator reads (measured/links_file.hpp) to `file`.
std::vector<std::string> link_columns();
void report_links(const ClusterLinks& links, CsvWriter& file);

// Prints all-reduces beside the time that their bytes need on the link between hosts, and writes
// them to `file`.
std::vector<std::string> link_use_columns();
void report_link_use(const std::string& hosts, const std::vector<OrderMeasurement>& measurements,
                     const CostModel& link, CsvWriter& file);

}  // namespace ddp
