#include "19_checkpoint_failover/show/failover_report.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "common/data/random.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

std::int64_t samples_at_start(const Attempt& attempt) {
    for (const TimedStatus& each : attempt.status_lines)
        if (each.status.what == "resumed")
            return std::stoll(each.status.value);
    return std::numeric_limits<std::int64_t>::max();  // it has not begun to train
}

class ScenarioWriter {
  public:
    explicit ScenarioWriter(const std::string& path)
        : csv_(path, {"story", "what", "rank", "begin_s", "end_s", "samples", "loss"}) {}

    void write(const Scenario& scenario) {
        double caught_up_s = 0;
        for (std::size_t i = 0; i < scenario.attempts.size(); i++) {
            const Attempt& attempt = scenario.attempts[i];
            const bool fails = i < scenario.faults.size();
            const double last_s = fails ? scenario.faults[i].time_s : attempt.end_s;
            const double started_s = attempt.time_of("started"),
                         resumed_s = attempt.time_of("resumed");
            caught_up_s = i == 0 ? resumed_s : attempt.time_of_step(scenario.faults[i - 1].at_step);
            for (int rank = 0; rank < attempt.ranks(); rank++) {
                interval(scenario, "starts", rank, attempt.begin_s, started_s);
                interval(scenario, "loads", rank, started_s, resumed_s);
                interval(scenario, "redoes", rank, resumed_s, caught_up_s);
                interval(scenario, "trains", rank, caught_up_s, last_s);
                if (fails)
                    interval(scenario, "is down", rank, last_s, attempt.end_s);
            }
            for (int victim = 0; fails && victim < scenario.faults[i].count; victim++)
                csv_.row({scenario.name, scenario.faults[i].text(),
                          scenario.faults[i].rank + victim, last_s, last_s, 0, 0.0});
            const bool is_last = i + 1 == scenario.attempts.size();
            write_status_lines(scenario, attempt,
                               is_last ? std::numeric_limits<std::int64_t>::max()
                                       : samples_at_start(scenario.attempts[i + 1]));
        }
    }

  private:
    void interval(const Scenario& scenario, const std::string& what, int rank, double begin_s,
                  double end_s) {
        if (end_s > begin_s)
            csv_.row({scenario.name, what, rank, begin_s, end_s, 0, 0.0});
    }

    // Writes the checkpoints and the losses up to `max_samples`: later ones were lost, since the
    // next attempt has continued from a checkpoint before them.
    void write_status_lines(const Scenario& scenario, const Attempt& attempt,
                            std::int64_t max_samples) {
        double saving_s = 0;
        for (const auto& [time_s, status] : attempt.status_lines) {
            if (status.what == "saving")
                saving_s = time_s;
            if (status.what == "saved")
                csv_.row({scenario.name, "checkpoint", status.rank, saving_s, time_s, 0, 0.0});
            if (status.what != "step")
                continue;
            std::int64_t samples = 0;
            double loss = 0;
            std::istringstream(status.value) >> samples >> loss;
            if (samples > max_samples)
                continue;
            csv_.row({scenario.name, "loss", status.rank, time_s, time_s, samples, loss});
        }
    }

    CsvWriter csv_;
};

// Returns the share of the time that is lost, at failures with random times between them.
double simulated_loss(double save_s, double interval_s, double between_failures_s) {
    Random random(0);
    double all_s = 0, kept_s = 0;
    for (int i = 0; i < 20'000; i++) {
        const double life_s = -between_failures_s * std::log(1 - random.uniform(0, 1));
        all_s += life_s;
        kept_s += std::floor(life_s / (interval_s + save_s)) * interval_s;
    }
    return 1 - kept_s / all_s;
}

void write_cost_of_saving(const std::filesystem::path& path) {
    constexpr double save_s = 42, between_failures_s = 26 * 3600;
    CsvWriter csv(path, {"interval_s", "saving", "redoing", "simulated"});
    for (const double minutes : {5, 7, 10, 15, 20, 30, 47, 70, 100, 150, 200, 300}) {
        const double interval_s = 60 * minutes;
        csv.row({interval_s, save_s / interval_s, interval_s / (2 * between_failures_s),
                 simulated_loss(save_s, interval_s, between_failures_s)});
    }
}

}  // namespace

std::string text_of_end(const Scenario& scenario) {
    const Attempt& last = scenario.attempts.back();
    if (last.is_preempted())
        return last.has("preempted") ? text_of_preemption(last.last_step())
                                     : "told to end (SIGTERM) before there was anything new to "
                                       "save; the same command goes on";
    const std::optional<double> accuracy = scenario.final_accuracy();
    return "done in " + format_count(static_cast<int>(scenario.attempts.size()), "attempt") + ": " +
           (accuracy ? "test accuracy " + format_fixed(*accuracy, 3) + ", " : "") + "hash " +
           scenario.final_hash();
}

void show_recoveries(const std::vector<Scenario>& scenarios) {
    Table table("From each fault until the training is back at the same step",
                {"fault", "step", "noticed", "all ended", "started", "loaded", "redone", "total",
                 "resumes as"});
    for (const Scenario& scenario : scenarios)
        for (const Recovery& each : scenario.recoveries())
            table.row({each.fault.text(), std::to_string(each.fault.at_step),
                       format_seconds(each.notice_s), format_seconds(each.end_s),
                       format_seconds(each.start_s), format_seconds(each.load_s),
                       format_seconds(each.redo_s), format_seconds(each.total_s()),
                       std::to_string(each.ranks) + " from " + std::to_string(each.from_step)});
    table.note(
        "resumes as: the number of ranks, and the step of the checkpoint that they load (0: there "
        "is none, and they begin again)");
    std::cout << table << std::endl;
}

void show_endings(const std::vector<Scenario>& scenarios) {
    // A training that writes its checkpoints between two steps reports neither time.
    const bool are_timed =
        std::any_of(scenarios.begin(), scenarios.end(),
                    [](const Scenario& each) { return each.attempts.back().has("waited"); });
    std::vector<std::string> header{"training", "attempts", "test accuracy",
                                    "hash of the parameters"};
    if (are_timed)
        header.insert(header.begin() + 2, {"waited to save", "copying"});
    Table table("How the trainings ended", header);
    for (const Scenario& scenario : scenarios) {
        const std::optional<double> accuracy = scenario.final_accuracy();
        std::vector<std::string> row{scenario.name, std::to_string(scenario.attempts.size()),
                                     accuracy ? format_fixed(*accuracy, 3) : "n/a",
                                     scenario.final_hash()};
        if (are_timed)
            row.insert(row.begin() + 2, {format_seconds(scenario.seconds_of("waited")),
                                         format_seconds(scenario.seconds_of("copied"))});
        table.row(row);
    }
    if (are_timed)
        table.note(
            "Of the last attempt. waited to save: the training, until the checkpoint before was "
            "written. copying: all copies to the host, beside forward and backward.");
    std::cout << table;
    if (scenarios.at(1).final_hash() != scenarios.at(0).final_hash())
        throw std::runtime_error(
            "the killed training and the undisturbed one differ in their parameters");
    std::cout
        << "The killed training ended with the parameters of the undisturbed one, to the bit.\n";
}

void write_scenarios(const std::string& path, const std::vector<Scenario>& scenarios) {
    ScenarioWriter writer(path);
    for (const Scenario& scenario : scenarios)
        writer.write(scenario);
    write_cost_of_saving(beside(path, "saving"));
}

}  // namespace ddp
