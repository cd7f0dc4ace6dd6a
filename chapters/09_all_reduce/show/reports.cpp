#include "09_all_reduce/show/reports.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <stdexcept>

#include "07_broadcast/show/pace.hpp"
#include "09_all_reduce/support/algorithms.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {

LinkSpeed link_of(const CommonOptions& common) {
    return common.link.value_or(LinkSpeed{100e6, 100e-6});
}

void show_link(Rank& rank, const CommonOptions& common) {
    const LinkSpeed link = link_of(common);
    const std::size_t bytes = std::size_t{common.quick ? 1u : 4u} << 20, count = bytes / 4;
    const int ranks = rank.world_size();
    Peers peers(rank, 4 * bytes, {}, link);
    AllReduceData data(peers, count);
    CsvWriter file(
        rank.rank() == 0 ? common.csv : "",
        {"algorithm", "ranks", "bytes", "seconds", "expected_seconds", "bus_bytes_per_second"});
    Pace pace;
    Table table(
        "An all-reduce of " + format_bytes(static_cast<double>(bytes)) + " on " +
            format_count(ranks, "rank") + ", whose ports carry " +
            format_bandwidth(link.bytes_per_second) + " with a latency of " +
            format_seconds(link.latency_s),
        {"algorithm", "critical bytes", "of the data", "predicted", "measured", "difference"});
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
            file.row({algorithm.name, ranks, bytes, measured, predicted,
                      bus_bandwidth(ranks, bytes, measured)});
    }
    table.note("The link is simulated. Critical bytes pass the busiest port one after the other.");
    if (rank.rank() == 0) {
        std::cout << table << "\n";
        pace.warn();
    }
}

// Rounded sums depend on their order, so some ways differ from others; no rank differs from
// another. A Communicator that takes one of the ways gives its bits.
void show_bits(Rank& rank) {
    constexpr std::size_t count = 10'007;
    Table table("The bits of a sum of " + format_count(count) + " floats that were rounded",
                {"algorithm", "bits on rank 0", "on the others", "the same as"});
    std::map<std::string, std::string> first_with;
    const auto add = [&](const std::string& name, const std::vector<std::string>& hashes) {
        if (std::ranges::count(hashes, hashes[0]) != rank.world_size())
            throw std::runtime_error(name + ": the ranks have different bits");
        const auto [first, is_new] = first_with.emplace(hashes[0], name);
        table.row({name, hashes[0], "the same", is_new ? "" : first->second});
    };
    Peers peers(rank, 1 << 20);
    AllReduceData data(peers, count);
    for (const AllReduceAlgorithm<float>& algorithm : all_reduce_algorithms<float>(peers, count))
        add(algorithm.name, hashes_of_one(peers, algorithm, data, count));
    add("native", hashes_of(*make_native_communicator(rank, 1 << 20), count));
    table.note(
        "server: by rank. reduce+broadcast: neighbours, then pairs. The others: chunk c begins "
        "with rank c + 1 and wraps around. With two ranks all rows agree: x0 + x1 = x1 + x0. "
        "native: the "
        "Communicator.");
    if (rank.rank() == 0)
        std::cout << table;
}

}  // namespace ddp
