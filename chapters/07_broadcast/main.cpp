// How do weights reach everyone? A file for seven readers, then the real thing.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <span>

#include "05_ranks/cores.hpp"
#include "05_ranks/world.hpp"
#include "07_broadcast/show/algorithms.hpp"
#include "07_broadcast/show/pace.hpp"
#include "07_broadcast/show/worked_example.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

// The last of the sizes: over a link, one that takes no longer than a blink.
std::size_t largest_message(const CommonOptions& common) {
    constexpr double blink_s = 0.02;
    const std::size_t most = std::size_t{common.quick ? 1u : 16u} << 20;
    std::size_t bytes = 4 << 10;
    while (bytes < most && (!common.link || 4.0 * static_cast<double>(bytes) <
                                                common.link->bytes_per_second * blink_s))
        bytes *= 4;
    return bytes;
}

void add_notes(Table& table, const CostModel& message, int ranks, std::size_t bytes,
               const CommonOptions& common) {
    table.note("Predicted from ping-pong: alpha = " + format_seconds(message.alpha_s) +
               ", 1 / beta = " + format_bandwidth(1 / message.beta_s_per_byte) +
               (common.link ? " (the link is simulated)." : "."));
    table.note("Slices of a chain of " + format_bytes(static_cast<double>(bytes)) + ": " +
               std::to_string(default_slices(bytes)) + "; best by these numbers: " +
               std::to_string(best_slices(message, ranks, bytes, 1'000'000)) + ".");
    const int cores = usable_cores();
    if (kernels_run_on_cpu && !common.link && cores < ranks)
        table.note(std::to_string(ranks) + " ranks share " + std::to_string(cores) +
                   " cores: they wait for their turns, and copy one after the other.");
}

void measure_machine(Rank& rank, const CommonOptions& common, CsvWriter& file) {
    const std::size_t largest = largest_message(common);
    const int rounds = common.link ? 2 : common.quick ? 5 : 30;
    rank.select_device();
    Peers peers(rank, 2 * largest);
    const CostModel message = measure_messages(peers, largest, 2 * rounds);
    const auto algorithms = std::span(broadcast_algorithms()).last(4);  // as many as a page is wide
    std::vector<std::string> header{"bytes"};
    for (const BroadcastAlgorithm& algorithm : algorithms)
        header.insert(header.end(), {algorithm.name, "predicted"});
    header.push_back("fastest");
    Pace pace;
    Table table("A broadcast among " + std::to_string(rank.world_size()) + " ranks", header);
    for (std::size_t bytes = 4 << 10; bytes <= largest; bytes *= 4) {
        std::vector<std::string> cells{format_bytes(static_cast<double>(bytes))};
        std::pair<double, std::string> fastest{INFINITY, ""};
        for (const BroadcastAlgorithm& algorithm : algorithms) {
            const double measured = broadcast_seconds(peers, algorithm, bytes, rounds);
            const double predicted = algorithm.predicted_seconds(message, rank.world_size(), bytes);
            cells.insert(cells.end(), {format_seconds(measured), format_seconds(predicted)});
            fastest = std::min(fastest, {measured, algorithm.name});
            pace.add(measured, predicted, rank.world_size());
            if (rank.rank() == 0)
                file.row(
                    {"machine", algorithm.name, rank.world_size(), bytes, measured, predicted});
        }
        cells.push_back(fastest.second);
        table.row(cells);
    }
    if (rank.rank() != 0)
        return;
    add_notes(table, message, rank.world_size(), largest, common);
    std::cout << table << std::flush;
    if (common.link)
        pace.warn();
}

int run(World& world, const CommonOptions& common) {
    if (world.world_size() == 1 || world.job().has_several_nodes()) {
        if (world.has_rank_0())
            std::cout << "Here two or more ranks of one node are needed: try --ranks 4.\n";
        return 0;
    }
    CsvWriter file(world.has_rank_0() ? common.csv : "",
                   {"table", "algorithm", "ranks", "bytes", "seconds", "predicted_seconds"});
    const auto show_readers = [&](Rank& rank) { show_worked_example(rank, file, common.csv); };
    if (common.ranks || world.job().has_processes) {
        world.run(show_readers);
    } else {
        CommonOptions eight = common;
        eight.ranks = 8;
        World(eight).run(show_readers);
    }
    world.run([&](Rank& rank) { measure_machine(rank, common, file); });
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    Options parser("broadcast", "How do weights reach everyone? Four ways from one rank to all.");
    parser.refuse({"--seed", "--data", "--trace"}, "nothing here is random, read or timed so");
    parser.example("", "seven readers, then four ranks of this machine");
    parser.example("--ranks 4 --link 100MB/s,1ms", "four ranks, on a simulated link");
    parser.example("--processes 4 --csv broadcast.csv", "four processes, and what they measured");
    return run_ranks(argc, argv, parser, run);
}
