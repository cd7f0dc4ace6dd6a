// Chapter 12: must everyone wait? A parameter server whose workers do not wait for each other, what
// old gradients do, and training in four ways, with a slow worker and without.
#include <algorithm>
#include <iostream>

#include "03_network/models.hpp"
#include "05_ranks/world.hpp"
#include "12_async/show/experiment.hpp"
#include "12_async/show/implicit_momentum.hpp"
#include "12_async/show/staleness.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

std::vector<std::string> cells_of(Algorithm algorithm, bool has_slow, const Outcome& outcome) {
    const bool is_local =
        algorithm == Algorithm::local;  // no gradient is applied to what others have changed
    const auto of_server = [&](const std::string& text) { return is_local ? "" : text; };
    return {text_of(algorithm),
            has_slow ? "yes" : "no",
            format_count(outcome.gradients),
            format_count(outcome.updates),
            format_seconds(outcome.seconds),
            of_server(format_fixed(outcome.mean_staleness, 2)),
            of_server(std::to_string(outcome.most_staleness)),
            of_server(std::to_string(outcome.most_ahead)),
            format_fixed(outcome.accuracy, 3)};
}

void show_race(Rank& rank, const FashionMnist& data, const ExperimentOptions& mine,
               const std::filesystem::path& path) {
    Experiment experiment(rank, data, mine);
    const int workers = rank.world_size() - 1;
    Table table(
        "A small network on " + format_count(static_cast<std::int64_t>(data.train.count())) +
            " pictures; ranks: a server and " + std::to_string(workers) +
            (workers == 1 ? " worker" : " workers"),
        {"way", "slow", "gradients", "updates", "time", "staleness", "most", "ahead", "accuracy"});
    CsvWriter csv(rank.rank() == 0 ? path : "", {"way", "slow", "gradients", "seconds", "loss"});
    for (bool has_slow : {false, true})
        for (Algorithm algorithm : {Algorithm::synchronous, Algorithm::asynchronous,
                                    Algorithm::bounded, Algorithm::local}) {
            const Outcome outcome = experiment.run(algorithm, has_slow);
            if (rank.rank() != 0)
                continue;
            table.row(cells_of(algorithm, has_slow, outcome));
            for (const Outcome::Point& point : outcome.curve)
                csv.row({text_of(algorithm), has_slow ? "yes" : "no", point.gradients,
                         point.seconds, point.loss});
        }
    const std::string proofs[] = {experiment.prove_one_worker(),
                                  experiment.prove_meeting_every_step()};
    if (rank.rank() != 0)
        return;
    table.note("Each step sleeps " + format_seconds(mine.compute_s) +
               ", as if a device of its own computed; the slow worker's " +
               format_seconds(mine.compute_s * mine.slow) + ".");
    table.note("Bound: " + std::to_string(mine.bound) + " steps. Local SGD: all ranks meet every " +
               std::to_string(mine.every) + " steps, and nobody serves.");
    std::cout << table << "\n" << proofs[0] << "\n" << proofs[1] << "\n";
}

int run(int argc, char** argv) {
    ExperimentOptions mine;
    double compute_ms = 3;
    Options options("async",
                    "Must everyone wait? A parameter server, and workers that do not wait.");
    options.add_int("--gradients", mine.gradients, {1, 1'000'000}, "of each training");
    options.add_int("--batch", mine.batch, {1, 256}, "pictures a gradient");
    options.add_double("--learning-rate", mine.learning_rate, {1e-6, 10},
                       "of a step of all workers together");
    options.add_double("--compute", compute_ms, {0, 1000}, "milliseconds that a step sleeps");
    options.add_double("--slow", mine.slow, {1, 100},
                       "the slow worker sleeps so many times as long");
    options.add_int("--bound", mine.bound, {0, 1000}, "steps that a worker may be ahead");
    options.add_int("--every", mine.every, {1, 1'000'000}, "steps from meeting to meeting");
    options.refuse({"--link", "--trace"}, "nothing here is timed so");
    options.example("--ranks 2", "a server and one worker");
    options.example("--bound 0", "a bound that makes all wait");
    options.example("--slow 20", "a worker that hardly ever comes");
    const CommonOptions common = options.parse(argc, argv);
    if (const std::optional<int> status = launch_processes(common, argv))
        return *status;
    World world(common);
    mine.seed = common.seed;
    mine.compute_s = compute_ms * 1e-3;
    mine.gradients = std::min(mine.gradients, common.quick ? 96 : mine.gradients);
    if (mine.gradients < world.world_size())
        throw OptionError("--gradients " + std::to_string(mine.gradients) +
                          " is not one for each of " + std::to_string(world.world_size()) +
                          " ranks: take more.");
    if (world.has_rank_0()) {
        show_staleness();
        show_implicit_momentum(common.quick ? 2'000 : 20'000, common.seed);
    }
    if (world.world_size() == 1) {
        std::cout << "One rank has nobody to wait for: try --ranks 2, a server and a worker.\n";
        return 0;
    }
    if (world.job().has_several_hosts())
        throw OptionError(
            "The server's kernels reach the ranks of its own host only: use one host.");
    FashionMnist data;
    world.prepare([&] { data = load_data(common); });
    world.run([&](Rank& rank) {
        rank.select_device();
        show_race(rank, data, mine, common.csv);
    });
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_world_main([&] { return run(argc, argv); });
}
