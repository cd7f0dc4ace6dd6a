// A ping-pong, as in 06_messages, but between any two ranks of the job: N messages there and N
// back, enqueued at once, and the time of one of them.
//
//     rank a   mark  send ──▶           receive   ...   mark
//     rank b               receive ──▶ send       ...          (marks apart) / 2N: one message
#include "21_cluster/bench/links.hpp"

#include <algorithm>
#include <iostream>

#include "10_nodes/make_communicator.hpp"
#include "10_nodes/placement.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

// Returns how many round trips fill a batch: the clock is coarse, and the first message waits for
// the other rank to come. No batch takes much longer, since all other ranks wait for its end.
int trips_of_batch(double seconds_of_message) {
    constexpr double batch_s = 0.02;
    return static_cast<int>(std::clamp(batch_s / (2 * seconds_of_message), 1.0, 50.0));
}

// Makes `trips` round trips, and returns the seconds of one message.
double seconds_of_message(Communicator& communicator, unsigned char* data, std::size_t bytes,
                          int trips, Stream& stream) {
    Event begin, end;
    begin.record(stream);
    for (int i = 0; i < 2 * trips; i++) {
        if (i % 2 == communicator.index())
            communicator.send(data, bytes, 1 - communicator.index(), stream, "ping-pong");
        else
            communicator.receive(data, bytes, 1 - communicator.index(), stream, "ping-pong");
    }
    end.record(stream);
    communicator.synchronize(stream);
    return end.seconds_since(begin) / (2 * trips);
}

// Measures the messages of the ranks `from` and `to`. All ranks call it; all others wait.
LinkTimes measure_link(Rank& rank, int from, int to, const std::vector<std::size_t>& sizes,
                       int batches) {
    const bool takes_part = rank.rank() == from || rank.rank() == to;
    const Group pair = takes_part ? Group({from, to}) : Group({rank.rank()});
    const std::size_t most = sizes.back();
    const auto communicator =
        make_communicator("native", rank, most + SharedArena::unit, {.group = pair});
    ArenaBuffer<unsigned char> data = communicator->allocate<unsigned char>(most);
    Stream stream;
    LinkTimes times{{}, from, to};
    for (const std::size_t bytes : sizes) {
        std::vector<double> seconds;
        int trips = 1;
        for (int batch = -1; batch < batches; batch++) {
            const double mine =
                takes_part ? seconds_of_message(*communicator, data.data(), bytes, trips, stream)
                           : 0;
            const double each = rank.broadcast(mine, from);
            if (batch >= 0)
                seconds.push_back(each);
            trips = trips_of_batch(each);  // the first one has told
        }
        // The fastest batch counts: whatever disturbs a message makes it slower.
        times.messages.push_back({bytes, *std::ranges::min_element(seconds)});
    }
    return times;
}

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

}  // namespace

CostModel LinkTimes::cost() const {
    CostModel cost = fit_cost(messages);
    // Where short messages were disturbed and long ones were not, no time is left for the bytes.
    if (cost.beta_s_per_byte == 0)
        cost.beta_s_per_byte = messages.back().seconds / static_cast<double>(messages.back().bytes);
    return cost;
}

std::vector<std::size_t> message_sizes(std::size_t most) {
    std::vector<std::size_t> sizes;
    for (std::size_t bytes = 64; bytes <= most; bytes *= 4)
        sizes.push_back(bytes);
    return sizes;
}

ClusterLinks measure_links(Rank& rank, const std::vector<std::size_t>& sizes, int batches) {
    const Placement placement =
        placement_of(Group::all(rank.job()), rank.job(), rank.rank(), std::nullopt);
    ClusterLinks links;
    // The first two ranks of the first host that has two, and the first ranks of the first two
    // hosts.
    std::size_t first = 0;
    for (const int size : placement.sizes) {
        if (size > 1 && !links.inside.is_there())
            links.inside = measure_link(rank, placement.by_host[first],
                                        placement.by_host[first + 1], sizes, batches);
        first += static_cast<std::size_t>(size);
    }
    if (placement.sizes.size() > 1)
        links.between = measure_link(
            rank, placement.by_host[0],
            placement.by_host[static_cast<std::size_t>(placement.sizes[0])], sizes, batches);
    return links;
}

double share_of_link(const OrderMeasurement& measurement, const CostModel& link) {
    return measurement.expected_bytes * link.beta_s_per_byte / measurement.seconds;
}

std::vector<std::string> link_columns() {
    return {"link", "bytes", "seconds"};
}

void report_links(const ClusterLinks& links, CsvWriter& file) {
    std::vector<LinkColumns> columns;
    if (links.inside.is_there())
        columns.push_back({links.inside, "within a host", false});
    if (links.between.is_there())
        columns.push_back({links.between, "between hosts", true});
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
    return {"levels", "bytes", "bytes_leaving_host", "seconds", "link_seconds"};
}

void report_link_use(const std::string& hosts, const std::vector<OrderMeasurement>& measurements,
                     const CostModel& link, CsvWriter& file) {
    Table table("An all-reduce on " + hosts + ", and the link between them",
                {"array", "order", "time", "leaves a host", "which takes", "of the link"});
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
