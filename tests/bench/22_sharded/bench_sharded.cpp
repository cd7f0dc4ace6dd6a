// Measures a step at each stage, over a simulated link that takes as long as backward and without
// one, beside what the simulator predicts; lets it predict where nobody has measured; and measures
// steps beside those of PyTorch's fully_shard.
#include <algorithm>
#include <iostream>

#include "05_ranks/world.hpp"
#include "15_overlap/support/timed_training.hpp"
#include "common/report/stats.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"
#include "tests/bench/22_sharded/beside_pytorch.hpp"
#include "tests/bench/22_sharded/scale_stages.hpp"
#include "tests/bench/22_sharded/timed_stages.hpp"

namespace {

using namespace ddp;

struct BenchOptions {
    int batch = 512;
    int rounds = 9;
    int max_ranks = 4096;
    std::string pytorch = "auto";  // or "off", or an interpreter
};

StageTimes measure(const std::optional<LinkSpeed>& link, const BenchOptions& options,
                   CommonOptions common) {
    common.link = link;
    World world(common);
    StageTimes times;
    world.run([&](Rank& rank) {
        const StageTimes all = time_stages(rank, options.batch, options.rounds, common.seed);
        if (rank.rank() == 0)
            times = all;
    });
    return times;
}

// Returns the median over the rounds of what `more` takes longer than `less`.
double median_difference(const std::vector<double>& more, const std::vector<double>& less) {
    std::vector<double> differences;
    for (std::size_t i = 0; i < more.size(); i++)
        differences.push_back(more[i] - less[i]);
    return median(differences);
}

// Prints a row for each sharding. Predictions take the computing from its step without a link.
void report_steps(const StageTimes& bare, const StageTimes& linked, const LinkSpeed& link,
                  int ranks, CsvWriter& file) {
    Table table("A step at each stage: " + std::to_string(ranks) + " ranks, eight linear layers, " +
                    "512 wide (medians)",
                {"stage", "no link", "over the link", "predicted", "error"});
    for (std::size_t i = 0; i < shardings().size(); i++) {
        const Sharding& each = shardings()[i];
        const double bare_s = median(bare.seconds[i]), linked_s = median(linked.seconds[i]);
        const double predicted_s = predicted_step_s(i, bare, ranks, link);
        table.row({each.name, format_seconds(bare_s), format_seconds(linked_s),
                   format_seconds(predicted_s), format_percent(predicted_s / linked_s - 1)});
        file.row({each.name, bare_s * 1e3, linked_s * 1e3, predicted_s * 1e3});
    }
    table.note("The link: " + format_bandwidth(link.bytes_per_second) +
               ", over which DDP's all-reduces take as long as backward.");
    std::cout << table;
}

// Prints what follows from the steps. Indices are those of shardings().
void report_costs(const StageTimes& bare, const StageTimes& linked, const LinkSpeed& link,
                  int ranks) {
    const auto predicted = [&](std::size_t i) { return predicted_step_s(i, bare, ranks, link); };
    const double gather_s = linked.gradient_bytes * (ranks - 1) / ranks / link.bytes_per_second;
    std::cout << "The all-gather that DDP hides and stage 1 shows: "
              << format_seconds(median_difference(linked.seconds[1], linked.seconds[0]))
              << ", predicted " << format_seconds(predicted(1) - predicted(0)) << "; it takes "
              << format_seconds(gather_s) << ".\n"
              << "Prefetch hides "
              << format_percent(median_difference(linked.seconds[4], linked.seconds[3]) /
                                (predicted(4) - predicted(3)))
              << " of what can be hidden: "
              << format_seconds(median_difference(linked.seconds[4], linked.seconds[3])) << " of "
              << format_seconds(predicted(4) - predicted(3)) << " a step.\n"
              << "Without a link a step of stage 1 takes "
              << format_percent(median_ratio(bare.seconds[1], bare.seconds[0]) - 1)
              << " longer than DDP's.\n\n";
}

int run(int argc, char** argv) {
    BenchOptions options;
    Options parser("bench_sharded", "What the stages cost: over a link, without one, at scale.");
    parser.add_int("--batch", options.batch, {1, 60'000}, "samples a step and rank");
    parser.with_quick("--batch", [&] { options.batch = 128; });
    parser.add_int("--rounds", options.rounds, {1, 10'000}, "how often to measure each in turn");
    parser.with_quick("--rounds", [&] { options.rounds = 3; });
    parser.add_int("--most-ranks", options.max_ranks, {8, 8192}, "the last row of the simulation");
    parser.with_quick("--most-ranks", [&] { options.max_ranks = 512; });
    parser.add_text("--pytorch", options.pytorch,
                    "the Python whose fully_shard to measure; auto: python3, if it has one; off");
    parser.refuse({"--processes", "--data", "--trace"}, "its ranks are threads; give it --ranks");
    parser.example("--link 100MB/s,0ms", "another link");
    CommonOptions common = parser.parse(argc, argv);
    const int ranks = common.ranks.value_or(2);
    common.ranks = ranks;
    if (ranks < 2)
        throw OptionError("--ranks must be at least 2: one rank sends nothing.");
    std::optional<BenchmarkSubprocess> pytorch = start_fully_shard(options.pytorch, ranks);
    const StageTimes bare = measure(std::nullopt, options, common);
    const LinkSpeed link =
        common.link.value_or(link_as_slow_as(bare.backward_s, bare.gradient_bytes, ranks));
    const StageTimes linked = measure(link, options, common);
    CsvWriter file(common.csv, {"sharding", "bare_ms", "linked_ms", "predicted_ms"});
    report_steps(bare, linked, link, ranks, file);
    report_costs(bare, linked, link, ranks);
    const double operations = 6.0 * timed_width * timed_width * timed_layers * options.batch;
    show_free_batches(operations / (bare.forward_s + bare.backward_s), link.bytes_per_second,
                      ranks);
    std::cout << "\n";
    show_scaled_stages(options.max_ranks, beside(common.csv, "scale"));
    std::cout << "\n";
    show_beside_pytorch(std::move(pytorch), options.rounds, common, beside(common.csv, "pytorch"));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_world_main([&] { return run(argc, argv); });
}
