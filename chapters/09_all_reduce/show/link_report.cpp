#include "09_all_reduce/show/reports.hpp"

#include <iostream>

#include "07_broadcast/show/pace.hpp"
#include "09_all_reduce/show/times.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {

void show_link(Rank& rank, const CommonOptions& common, CsvWriter& file) {
    const LinkSpeed link = common.link.value_or(LinkSpeed{100e6, 100e-6});
    const std::size_t bytes = std::size_t{common.quick ? 1u : 4u} << 20, count = bytes / 4;
    const int ranks = rank.world_size();
    Peers peers(rank, 4 * bytes, {}, link);
    AllReduceData data(peers, count);
    Pace pace;
    Table table(
        "An all-reduce of " + format_bytes(static_cast<double>(bytes)) + " on " +
            format_count(ranks, "rank") + ", whose ports carry " +
            format_bandwidth(link.bytes_per_second) + " with a latency of " +
            format_seconds(link.latency_s),
        {"algorithm", "bytes in a row", "of the data", "predicted", "measured", "difference"});
    for (const AllReduceAlgorithm<float>& algorithm : all_reduce_algorithms<float>(peers, count)) {
        if (count > algorithm.most)
            continue;
        const double in_a_row = algorithm.predicted_seconds({0, 1}, ranks, bytes);
        const double predicted =
            algorithm.predicted_seconds({link.latency_s, 1 / link.bytes_per_second}, ranks, bytes);
        const double measured = seconds_of_one(peers, algorithm, data, count);
        table.row({algorithm.name, format_bytes(in_a_row),
                   format_fixed(in_a_row / static_cast<double>(bytes), 2),
                   format_seconds(predicted), format_seconds(measured),
                   format_percent(measured / predicted - 1)});
        pace.add(measured, predicted, ranks);
        if (rank.rank() == 0)
            file.row({"link", algorithm.name, ranks, bytes, measured, predicted,
                      bus_bandwidth(ranks, bytes, measured)});
    }
    table.note(
        "The link is simulated. Bytes in a row: that pass the busiest port one after the other.");
    if (rank.rank() == 0) {
        std::cout << table << "\n";
        pace.warn();
    }
}

}  // namespace ddp
