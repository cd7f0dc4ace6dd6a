#include "13_async/show/experiment_report.hpp"

#include <iostream>

#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

std::vector<std::string> cells_of(Algorithm algorithm, bool has_slow, const Outcome& outcome) {
    // Local SGD has no server, and so no staleness.
    const bool is_local = algorithm == Algorithm::local;
    const auto of_server = [&](const std::string& text) { return is_local ? "" : text; };
    return {to_string(algorithm),
            has_slow ? "yes" : "no",
            format_count(outcome.gradients),
            format_count(outcome.updates),
            format_seconds(outcome.seconds),
            of_server(format_fixed(outcome.mean_staleness, 2)),
            of_server(std::to_string(outcome.max_staleness)),
            of_server(std::to_string(outcome.max_ahead)),
            format_percent(outcome.idle),
            format_fixed(outcome.accuracy, 3)};
}

}  // namespace

void show_experiment(Rank& rank, const FashionMnist& data, const ExperimentOptions& options,
                     const std::filesystem::path& path) {
    Experiment experiment(rank, data, options);
    const int workers = rank.world_size() - 1;
    Table table("A small network on " +
                    format_count(static_cast<std::int64_t>(data.train.count())) +
                    " samples; ranks: a server and " + std::to_string(workers) +
                    (workers == 1 ? " worker" : " workers"),
                {"algorithm", "slow", "gradients", "updates", "time", "staleness", "max", "ahead",
                 "idle", "accuracy"});
    CsvWriter csv(rank.rank() == 0 ? path : "", {"way", "slow", "gradients", "seconds", "loss"});
    for (bool has_slow : {false, true})
        for (Algorithm algorithm : {Algorithm::synchronous, Algorithm::asynchronous,
                                    Algorithm::bounded, Algorithm::local}) {
            const Outcome outcome = experiment.run(algorithm, has_slow);
            if (rank.rank() != 0)
                continue;
            table.row(cells_of(algorithm, has_slow, outcome));
            for (const Outcome::Point& point : outcome.curve)
                csv.row({to_string(algorithm), has_slow ? "yes" : "no", point.gradients,
                         point.seconds, point.loss});
        }
    if (rank.rank() != 0)
        return;
    table.note("Each step sleeps for " + format_seconds(options.compute_s) +
               ", like a device that computes; the slow worker's for " +
               format_seconds(options.compute_s * options.slow) + ".");
    table.note("Bound: " + std::to_string(options.bound) +
               " steps. Local SGD: no server, and all ranks average their parameters every " +
               std::to_string(options.every) + " steps.");
    std::cout << table << "\n";
}

}  // namespace ddp
