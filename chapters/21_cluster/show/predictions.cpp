#include "21_cluster/show/predictions.hpp"

#include <cmath>
#include <iostream>
#include <map>

#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

using simulator::Algorithm;

constexpr Algorithm algorithms[] = {Algorithm::flat, Algorithm::two_level, Algorithm::tree};
constexpr const char* names[] = {"flat ring", "two levels", "double tree"};
constexpr int jittery_steps = 200;

// Returns the ranks of each row: those of one node, then four times as many from row to row, up to
// the most. The last row takes three quarters of the time.
std::vector<int> rank_counts(const Question& question) {
    const int local = question.node.ranks_per_node;
    std::vector<int> counts;
    for (int nodes = question.max_ranks / local; nodes > 1; nodes /= 4)
        counts.insert(counts.begin(), nodes * local);
    counts.insert(counts.begin(), local);
    return counts;
}

// Returns an all-reduce's time by its bytes: each size is simulated once.
simulator::Seconds remembered(Algorithm algorithm, const simulator::Cluster& cluster) {
    return [=, known = std::map<double, double>()](double bytes) mutable {
        const auto [entry, is_new] = known.try_emplace(bytes);
        if (is_new)
            entry->second = simulator::all_reduce_s(algorithm, cluster, bytes);
        return entry->second;
    };
}

// One row of both tables.
struct ScalingRow {
    double all_reduce_s[std::size(algorithms)];
    double efficiency[std::size(algorithms)];
    double with_jitter;  // of the best of them
};

ScalingRow scaling_row(const Question& question, int ranks) {
    ScalingRow row{};
    simulator::Cluster cluster = question.node;
    cluster.nodes = ranks / cluster.ranks_per_node;
    const double alone_s = question.step.compute_s();
    for (std::size_t i = 0; i < std::size(algorithms); i++) {
        const simulator::Seconds seconds = remembered(algorithms[i], cluster);
        row.all_reduce_s[i] = seconds(question.bytes);
        row.efficiency[i] = alone_s / simulator::step_s(question.step, seconds, true);
        if (row.efficiency[i] >= std::ranges::max(row.efficiency))
            row.with_jitter = alone_s / simulator::jittery_step_s(question.step, seconds, true,
                                                                  ranks, question.jitter,
                                                                  jittery_steps, question.delays);
    }
    return row;
}

// Writes what nothing was measured for. `what` is said of `ranks` ranks.
void write_prediction(CsvWriter& file, const std::string& kind, int ranks, const std::string& what,
                      const std::string& unit, double predicted) {
    file.row({kind, std::to_string(ranks) + " ranks, " + what, unit, "", predicted, "", ""});
}

std::string to_string(double value, const std::string& unit) {
    return unit.empty() ? format_fixed(value, 3) : format_bandwidth(value * 1e9);
}

}  // namespace

std::vector<std::string> prediction_columns() {
    return {"kind", "what", "unit", "measured", "predicted", "error", "source"};
}

void show_recorded_step(const std::filesystem::path& path, const RecordedStep& recorded) {
    std::size_t bucket = 0;
    const simulator::Seconds measured = [&](double) { return recorded.all_reduce_s[bucket++]; };
    const double model_s = simulator::step_s(recorded.step, measured, true);
    std::cout << "The step in " << path.string() << ", of " << format_count(recorded.ranks, "rank")
              << ": measured " << format_seconds(recorded.measured_s)
              << ", the model of a step says " << format_seconds(model_s)
              << " with the all-reduces that were measured ("
              << format_percent(model_s / recorded.measured_s - 1) << ").\n\n";
}

void show_scaling(const Question& question, const std::vector<Comparison>& comparisons,
                  CsvWriter& file) {
    Table times("An all-reduce of " + format_bytes(question.bytes),
                {"ranks", "flat ring", "two levels", "double tree", "off by"});
    Table efficiencies(
        "Weak-scaling efficiency: the share of its speed that a rank keeps",
        {"ranks", "flat ring", "two levels", "double tree", "the best, with jitter", "off by"});
    const std::string all_reduces_off =
        format_percent(mean_error(published_all_reduce, comparisons));
    const std::string trainings_off =
        format_percent(mean_error(published_training, comparisons)) + " of the loss";
    for (const int ranks : rank_counts(question)) {
        const ScalingRow row = scaling_row(question, ranks);
        const auto& [flat, two, tree] = row.efficiency;
        const auto& [flat_s, two_s, tree_s] = row.all_reduce_s;
        times.row({std::to_string(ranks), format_seconds(flat_s), format_seconds(two_s),
                   format_seconds(tree_s), all_reduces_off});
        efficiencies.row({std::to_string(ranks), format_fixed(flat, 2), format_fixed(two, 2),
                          format_fixed(tree, 2), format_fixed(row.with_jitter, 2), trainings_off});
        for (std::size_t i = 0; i < std::size(algorithms); i++)
            write_prediction(file, "all-reduce", ranks, names[i], "s", row.all_reduce_s[i]);
        for (std::size_t i = 0; i < std::size(algorithms); i++)
            write_prediction(file, "speed kept", ranks, names[i], "", row.efficiency[i]);
        write_prediction(file, "speed kept", ranks, "the best, with jitter", "", row.with_jitter);
    }
    times.note("Off by: the mean error of this model for all-reduces that others have published.");
    for (const char* kind : {large_all_reduce, own_all_reduce, published_all_reduce})
        times.note(errors_of(kind, comparisons));
    const bool is_exponential = question.delays == simulator::Delays::exponential;
    efficiencies.note(
        "Jitter: in each step a rank computes longer by " + format_percent(question.jitter) +
        " on average, and the slowest one counts. " +
        (is_exponential ? "The delays are exponential." : "No delay is longer than twice that.") +
        " Off by: the mean error for trainings that others have published. The steps below were of "
        "ranks that sleep, over simulated links: they test the code, not the model.");
    for (const char* kind : {plain_step, jittery_step, published_training})
        efficiencies.note(errors_of(kind, comparisons));
    std::cout << times << "\n" << efficiencies << "\n";
}

void show_failures(const Question& question, const std::vector<Comparison>& comparisons,
                   CsvWriter& file) {
    Table table("Failures: how often to save, and the goodput: the share of the time that counts",
                {"ranks", "a failure every", "save every", "goodput", "simulated", "if every 3 h",
                 "off by"});
    constexpr int failure_count = 20'000;
    const std::string failures_off =
        format_percent(mean_error(published_failures, comparisons)) + " of the loss";
    for (const int ranks : rank_counts(question)) {
        simulator::Failures failures = question.failures;
        failures.mean_s /= ranks;
        const double interval_s = best_interval_s(failures);
        const double useful = useful_share(failures, interval_s);
        const double simulated = simulated_useful_share(failures, interval_s, failure_count);
        const double rarely = useful_share(failures, 3 * 3600);
        table.row({std::to_string(ranks), format_fixed(failures.mean_s / 3600, 1) + " h",
                   format_fixed(interval_s / 60, 1) + " min", format_percent(useful),
                   format_percent(simulated), format_percent(rarely), failures_off});
        write_prediction(file, "failures", ranks, "time between checkpoints", "s", interval_s);
        write_prediction(file, "failures", ranks, "time that counts", "", useful);
        write_prediction(file, "failures", ranks, "time that counts, simulated", "", simulated);
    }
    table.note("A rank fails every " +
               format_count(std::llround(question.failures.mean_s / 3600), "hour") +
               " on average, a checkpoint costs " + format_seconds(question.failures.save_s) +
               ", a restart " + format_seconds(question.failures.restart_s) +
               ". Simulated: the same share, from a job that fails " +
               format_count(failure_count, "time") + ".");
    table.note(errors_of(published_failures, comparisons));
    std::cout << table << "\n";
}

void show_published(const std::vector<Comparison>& comparisons, CsvWriter& file) {
    Table table("Published numbers, and what the simulator makes of them",
                {"what", "published", "predicted", "error", "source"});
    for (const Comparison& row : comparisons) {
        file.row(
            {row.kind, row.what, row.unit, row.measured, row.predicted, row.error(), row.source});
        if (row.kind.starts_with("published"))
            table.row({row.what, to_string(row.measured, row.unit),
                       to_string(row.predicted, row.unit), format_percent(row.error()),
                       row.source});
    }
    table.note(
        "GB/s: bus bandwidth of an all-reduce. A number without a unit: the share that is kept of "
        "the speed or of the time; the error is that of the lost share.");
    std::cout << table << "\n";
}

}  // namespace ddp
