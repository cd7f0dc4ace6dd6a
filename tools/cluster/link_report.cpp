#include "tools/cluster/link_report.hpp"

#include <iostream>

#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

// The columns of one link in the table: message `i` of each.
struct LinkColumns {
    const LinkTimes& link;
    std::string title;
    bool has_share;  // a column with the share of what the link carries at most

    void add_header(std::vector<std::string>& header) const {
        for (const std::string& name : {title, std::string("bandwidth")})
            header.push_back(name);
        if (has_share)
            header.emplace_back("of the link");
    }
    void add_cells(std::size_t i, std::vector<std::string>& cells) const {
        const auto [bytes, seconds] = link.messages[i];
        const double bandwidth = static_cast<double>(bytes) / seconds;
        cells.push_back(format_seconds(seconds));
        cells.push_back(format_bandwidth(bandwidth));
        if (has_share)
            cells.push_back(format_percent(bandwidth * link.cost().beta_s_per_byte));
    }
    std::string note() const {
        return title + " (ranks " + std::to_string(link.from) + " and " + std::to_string(link.to) +
               "): alpha " + format_seconds(link.cost().alpha_s) + ", and 1 / beta " +
               format_bandwidth(1 / link.cost().beta_s_per_byte) + ".";
    }
};

// Returns the columns of the links that are there.
std::vector<LinkColumns> columns_of(const ClusterLinks& links) {
    std::vector<LinkColumns> columns;
    if (links.inside.is_there())
        columns.push_back({links.inside, "within a node", false});
    if (links.between.is_there())
        columns.push_back({links.between, "between nodes", true});
    return columns;
}

}  // namespace

double share_of_link(const OrderMeasurement& measurement, const CostModel& link) {
    return measurement.expected_bytes * link.beta_s_per_byte / measurement.seconds;
}

std::vector<std::string> link_columns() {
    return {"link", "bytes", "seconds"};
}

void report_links(const ClusterLinks& links, CsvWriter& file) {
    const std::vector<LinkColumns> columns = columns_of(links);
    std::vector<std::string> header{"message"};
    for (const LinkColumns& column : columns)
        column.add_header(header);
    Table table("A message between two ranks", header);
    const std::vector<MessageTime>& sizes = columns.at(0).link.messages;
    for (std::size_t i = 0; i < sizes.size(); i++) {
        std::vector<std::string> cells{format_bytes(static_cast<double>(sizes[i].bytes))};
        for (const LinkColumns& column : columns)
            column.add_cells(i, cells);
        table.row(cells);
    }
    for (const LinkColumns& column : columns) {
        table.note(column.note());
        for (const MessageTime& message : column.link.messages)
            file.row({column.has_share ? "between" : "inside", message.bytes, message.seconds});
    }
    if (links.between.is_there())
        table.note("of the link: of 1 / beta, which the longest messages come close to.");
    std::cout << table << "\n";
}

std::vector<std::string> link_use_columns() {
    return {"levels", "bytes", "bytes_leaving_node", "seconds", "link_seconds"};
}

void report_link_use(const std::string& nodes, const std::vector<OrderMeasurement>& measurements,
                     const CostModel& link, CsvWriter& file) {
    Table table("An all-reduce on " + nodes + ", and the link between them",
                {"array", "order", "time", "leaves a node", "which takes", "of the link"});
    const OrderMeasurement* before = nullptr;
    for (const OrderMeasurement& each : measurements) {
        // Where there is only one order, it was measured twice.
        if (before != nullptr && before->bytes == each.bytes && before->levels == each.levels)
            continue;
        before = &each;
        const double link_s = each.expected_bytes * link.beta_s_per_byte;
        table.row({format_bytes(static_cast<double>(each.bytes)),
                   each.levels == 1 ? "one ring" : "two levels", format_seconds(each.seconds),
                   format_bytes(each.expected_bytes), format_seconds(link_s),
                   format_percent(share_of_link(each, link))});
        file.row({each.levels, each.bytes, each.expected_bytes, each.seconds, link_s});
    }
    table.note("which takes: the time of these bytes at " +
               format_bandwidth(1 / link.beta_s_per_byte) + ". No all-reduce is faster than that.");
    std::cout << table << "\n";
}

}  // namespace ddp
