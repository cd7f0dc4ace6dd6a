#include "07_broadcast/show/worked_example.hpp"

#include <algorithm>
#include <iostream>

#include "07_broadcast/show/algorithms.hpp"
#include "07_broadcast/show/pace.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr double faster = 100, bytes_per_second = 1e6;  // the run, and the example's link
constexpr std::size_t file_bytes = 5'000'000;

// When each of the readers had the file, the first first, in the example's seconds.
std::string each_arrival(std::vector<double> arrived) {
    std::ranges::sort(arrived);
    std::string each;
    for (std::size_t i = 1; i < arrived.size(); i++)  // the first of all is who sends
        each += format_fixed(arrived[i] * faster, 1) + " ";
    return each;
}

// Writes from when to when each reader receives, in the order in which they have the file. A reader
// that receives alone has all of the sender's port, and so takes as long as the file; all at once
// receive from the beginning on.
void write_readers(CsvWriter& file, const BroadcastAlgorithm& algorithm,
                   std::vector<double> arrived) {
    std::ranges::sort(arrived);
    for (std::size_t i = 1; i < arrived.size(); i++) {
        const double end = arrived[i] * faster;
        const double alone = static_cast<double>(file_bytes) / bytes_per_second;
        const double begin = algorithm.name == "at once" ? 0 : std::max(0.0, end - alone);
        file.row({algorithm.in_words, i, begin, end});
    }
}

}  // namespace

void show_worked_example(Rank& rank, CsvWriter& file, const std::filesystem::path& csv) {
    CsvWriter readers(rank.rank() == 0 ? beside(csv, "readers") : "",
                      {"algorithm", "reader", "begin_seconds", "end_seconds"});
    Pace pace;
    rank.select_device();
    Peers peers(rank, 2 * file_bytes, {}, LinkSpeed{faster * bytes_per_second, 0});
    const int ranks = rank.world_size();
    Table table("A file of 5 MB for " + std::to_string(ranks - 1) +
                    (ranks == 2 ? " reader" : " readers") + ", at 1 MB/s",
                {"algorithm", "predicted", "measured", "difference", "seconds until each has it"});
    std::string share;
    for (const BroadcastAlgorithm& algorithm : broadcast_algorithms()) {
        const LinkRun run = broadcast_over_link(peers, algorithm, file_bytes);
        const double predicted =
            algorithm.predicted_seconds({0, 1 / bytes_per_second}, ranks, file_bytes);
        const double measured = run.seconds * faster;
        table.row({algorithm.in_words, format_seconds(predicted), format_seconds(measured),
                   format_percent(measured / predicted - 1), each_arrival(run.arrived)});
        if (algorithm.name == "at once")
            share = format_bandwidth(static_cast<double>(file_bytes) / measured);
        pace.add(measured, predicted, ranks);
        if (rank.rank() == 0) {
            file.row({"worked example", algorithm.name, ranks, file_bytes, measured, predicted});
            write_readers(readers, algorithm, run.arrived);
        }
    }
    table.note("All at once they share the link: it brings " + share + " to each.");
    table.note("The link is simulated, and runs " + format_fixed(faster, 0) +
               " times as fast as the example says.");
    if (rank.rank() == 0) {
        std::cout << table << "\n";
        pace.warn();
    }
}

}  // namespace ddp
