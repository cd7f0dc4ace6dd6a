// Measures how much of the communication hides behind backward: the same steps with overlap and
// without, in turn, over a simulated link that takes as long as backward, and without a link.
#include <algorithm>
#include <iostream>
#include <optional>

#include "03_network/models.hpp"
#include "05_ranks/world.hpp"
#include "10_nodes/make_communicator.hpp"
#include "15_overlap/show/linked_steps.hpp"
#include "15_overlap/support/timed_training.hpp"
#include "common/report/bench.hpp"
#include "common/report/csv.hpp"
#include "common/report/options.hpp"
#include "common/report/stats.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

struct OverlapOptions {
    std::vector<int> ranks{2};
    int batch = 512;
    int rounds = 11;
};

constexpr int width = 512;
constexpr int layer_count = 8;
constexpr std::size_t cap_bytes = 1 << 20;  // about a layer
constexpr int step_count = 4;               // of a round

struct Result {
    StepParts off, on;  // the medians of the rounds
    double hidden = 0;  // median over the rounds
    double gradient_bytes = 0;
};

// Measures steps with overlap and without, in turn. Returns the same on all ranks.
Result compare(Rank& rank, const OverlapOptions& options, const CommonOptions& common) {
    rank.select_device();
    auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
    Random random(common.seed);
    const std::vector<int> widths(layer_count + 1, width);
    const auto model_off = make_mlp(device, random, widths);
    const auto model_on = make_mlp(device, random, widths);
    const auto communicator = make_communicator("native", rank, 2 * ddp_arena_bytes(*model_off));
    TimedOptions timed{{width}, width, options.batch, false, {cap_bytes, false, false}};
    TimedTraining training_off(*communicator, device, *model_off, random, timed);
    timed.ddp.overlap = true;
    TimedTraining training_on(*communicator, device, *model_on, random, timed);

    std::vector<StepParts> off, on;
    const auto measurement = [](TimedTraining& training, std::vector<StepParts>& rounds) {
        return [&] {
            rounds.push_back(training.run(step_count));
            return rounds.back().whole;
        };
    };
    const Measurement variants[] = {measurement(training_off, off), measurement(training_on, on)};
    interleave(variants, 1, options.rounds);
    off.erase(off.begin());  // the warm-up
    on.erase(on.begin());
    return {medians(off), medians(on), hidden_share(off, on), training_on.gradient_bytes()};
}

Result measure_steps(int ranks, const std::optional<LinkSpeed>& link, const OverlapOptions& options,
                     CommonOptions common) {
    common.ranks = ranks;
    common.link = link;
    World world(common);
    Result result;
    world.run([&](Rank& rank) {
        const Result shared = compare(rank, options, common);
        if (rank.rank() == 0)
            result = shared;
    });
    return result;
}

class OverlapReport {
  public:
    explicit OverlapReport(const std::filesystem::path& csv)
        : csv_(csv, {"ranks", "link", "overlap", "step_ms", "backward_ms", "comm_ms", "hidden"}) {}

    void add(int ranks, const std::optional<LinkSpeed>& link, const Result& result) {
        const std::string name = link ? format_bandwidth(link->bytes_per_second) : "none";
        row(ranks, name, "off", result.off, 0);
        row(ranks, name, "on", result.on, result.hidden);
    }

    void print() {
        table_.note(
            "Hidden: the time that overlap saves, as a share of the most that it could save: the "
            "communication, or the backward that is left when the first bucket is ready, whichever "
            "is less. The simulated link is as slow as backward unless --link is given; there the "
            "book holds itself to 85 %. The share is the median of the rounds' shares, not the "
            "quotient of these medians.");
        table_.note(
            "Without a link, ranks on a CPU hide little: the cores that add and copy the buckets "
            "are those that compute backward. Below 0 %, the step with overlap was the longer "
            "one.");
        std::cout << table_;
    }

  private:
    void row(int ranks, const std::string& link, const std::string& overlap, const StepParts& round,
             double hidden) {
        const double step_s = round.whole / step_count, backward_s = round.backward / step_count,
                     communication_s = round.communication / step_count;
        csv_.row(
            {ranks, link, overlap, step_s * 1e3, backward_s * 1e3, communication_s * 1e3, hidden});
        table_.row({std::to_string(ranks), link, overlap, format_seconds(step_s),
                    format_seconds(backward_s), format_seconds(communication_s),
                    overlap == "on" ? format_percent(hidden) : "-"});
    }

    CsvWriter csv_;
    Table table_{"Eight linear layers, 512 wide, in buckets of 1 MiB (medians)",
                 {"ranks", "link", "overlap", "a step", "backward", "communication", "hidden"}};
};

int run(int argc, char** argv) {
    OverlapOptions options;
    Options parser("bench_overlap", "How much of the communication hides behind backward.");
    parser.add_ints("--ranks", options.ranks, {2, max_ranks},
                    "how many train together, one after the other");
    parser.add_int("--batch", options.batch, {1, 60'000}, "samples a step and rank");
    parser.add_int("--rounds", options.rounds, {1, 10'000}, "how often to measure each in turn");
    parser.with_quick("--rounds", [&] { options.rounds = 3; });
    parser.refuse({"--processes", "--data", "--trace"}, "its ranks are threads; give it --ranks");
    parser.example("--ranks 2,4 --csv overlap.csv", "two ranks, then four");
    const CommonOptions common = parser.parse(argc, argv);
    OverlapReport report(common.csv);
    for (const int ranks : options.ranks) {
        const Result bare = measure_steps(ranks, std::nullopt, options, common);
        const LinkSpeed link = common.link.value_or(
            link_as_slow_as(bare.off.backward / step_count, bare.gradient_bytes, ranks));
        report.add(ranks, link, measure_steps(ranks, link, options, common));
        report.add(ranks, std::nullopt, bare);
    }
    report.print();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_world_main([&] { return run(argc, argv); });
}
