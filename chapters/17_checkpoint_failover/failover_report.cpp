#include "17_checkpoint_failover/failover_report.hpp"

#include <algorithm>
#include <iostream>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

int ranks_of(const Attempt& attempt) {
    int ranks = 0;
    for (const TimedReport& each : attempt.reports)
        ranks = std::max(ranks, each.report.rank + 1);
    return ranks;
}

// The last value that was told, or "".
std::string last_value(const std::vector<Attempt>& attempts, const std::string& what) {
    std::string value;
    for (const Attempt& attempt : attempts)
        for (const TimedReport& each : attempt.reports)
            if (each.report.what == what)
                value = each.report.value;
    return value;
}

int step_of(const Attempt& attempt, const std::string& what) {
    for (const TimedReport& each : attempt.reports)
        if (each.report.what == what)
            return static_cast<int>(each.report.step);
    return 0;
}

std::int64_t samples_at_start(const Attempt& attempt) {
    for (const TimedReport& each : attempt.reports)
        if (each.report.what == "resumed")
            return std::stoll(each.report.value);
    return std::numeric_limits<std::int64_t>::max();  // it has changed nothing
}

// When the job was at this step again; its end, if it was not.
double time_of_step(const Attempt& attempt, int step) {
    for (const TimedReport& each : attempt.reports)
        if (each.report.what != "met" && each.report.step >= step)
            return each.time_s;
    return attempt.end_s;
}

class StoryWriter {
  public:
    explicit StoryWriter(const std::string& path)
        : csv_(path, {"story", "what", "rank", "begin_s", "end_s", "samples", "loss"}) {}

    void write(const Story& story) {
        double caught_up_s = 0;
        for (std::size_t i = 0; i < story.attempts.size(); i++) {
            const Attempt& attempt = story.attempts[i];
            const bool fails = i < story.faults.size();
            const double last_s = fails ? story.faults[i].time_s : attempt.end_s;
            const double met_s = attempt.time_of("met"), resumed_s = attempt.time_of("resumed");
            caught_up_s = i == 0 ? resumed_s : time_of_step(attempt, story.faults[i - 1].at_step);
            for (int rank = 0; rank < ranks_of(attempt); rank++) {
                interval(story, "starts", rank, attempt.begin_s, met_s);
                interval(story, "loads", rank, met_s, resumed_s);
                interval(story, "redoes", rank, resumed_s, caught_up_s);
                interval(story, "trains", rank, caught_up_s, last_s);
                if (fails)
                    interval(story, "is down", rank, last_s, attempt.end_s);
            }
            if (fails)
                csv_.row({story.name, story.faults[i].text(), story.faults[i].rank, last_s, last_s,
                          0, 0.0});
            const bool is_last = i + 1 == story.attempts.size();
            write_reports(story, attempt,
                          is_last ? std::numeric_limits<std::int64_t>::max()
                                  : samples_at_start(story.attempts[i + 1]));
        }
    }

  private:
    void interval(const Story& story, const std::string& what, int rank, double begin_s,
                  double end_s) {
        if (end_s > begin_s)
            csv_.row({story.name, what, rank, begin_s, end_s, 0, 0.0});
    }

    // Losses up to `samples`: what came behind the next life's checkpoint has not been.
    void write_reports(const Story& story, const Attempt& attempt, std::int64_t most_samples) {
        double saving_s = 0;
        for (const auto& [time_s, report] : attempt.reports) {
            if (report.what == "saving")
                saving_s = time_s;
            if (report.what == "saved")
                csv_.row({story.name, "checkpoint", report.rank, saving_s, time_s, 0, 0.0});
            if (report.what != "step")
                continue;
            std::int64_t samples = 0;
            double loss = 0;
            std::istringstream(report.value) >> samples >> loss;
            if (samples > most_samples)
                continue;
            csv_.row({story.name, "loss", report.rank, time_s, time_s, samples, loss});
        }
    }

    CsvWriter csv_;
};

}  // namespace

std::string Story::final_hash() const {
    return last_value(attempts, "done");
}

double Story::final_accuracy() const {
    const std::string accuracy = last_value(attempts, "tested");
    return accuracy.empty() ? 0 : std::stod(accuracy);
}

double Story::waited_s() const {
    const std::string seconds = last_value(attempts, "waited");
    return seconds.empty() ? 0 : std::stod(seconds);
}

std::vector<Recovery> Story::recoveries() const {
    std::vector<Recovery> all;
    for (std::size_t i = 0; i < faults.size() && i + 1 < attempts.size(); i++) {
        const Attempt &failed = attempts[i], &next = attempts[i + 1];
        const double met_s = next.time_of("met"), resumed_s = next.time_of("resumed");
        Recovery recovery{faults[i]};
        recovery.notice_s = failed.noticed_s - faults[i].time_s;
        recovery.end_s = failed.end_s - failed.noticed_s;
        recovery.start_s = met_s - failed.end_s;
        recovery.load_s = resumed_s - met_s;
        recovery.redo_s = std::max(0.0, time_of_step(next, faults[i].at_step) - resumed_s);
        recovery.from_step = step_of(next, "resumed");
        recovery.ranks = ranks_of(next);
        all.push_back(recovery);
    }
    return all;
}

void show_recoveries(const std::vector<Story>& stories) {
    Table table("From each fault until the training is again where it was",
                {"fault", "step", "noticed", "all ended", "started", "loaded", "redone", "total",
                 "goes on"});
    for (const Story& story : stories)
        for (const Recovery& each : story.recoveries())
            table.row({each.fault.text(), std::to_string(each.fault.at_step),
                       format_seconds(each.notice_s), format_seconds(each.end_s),
                       format_seconds(each.start_s), format_seconds(each.load_s),
                       format_seconds(each.redo_s), format_seconds(each.total_s()),
                       std::to_string(each.ranks) + " from " + std::to_string(each.from_step)});
    table.note("goes on: with so many ranks, from the checkpoint of that step");
    std::cout << table << std::endl;
}

void show_endings(const std::vector<Story>& stories) {
    Table table("How the trainings have ended",
                {"training", "lives", "waited to save", "test accuracy", "hash of the parameters"});
    for (const Story& story : stories)
        table.row({story.name, std::to_string(story.attempts.size()),
                   format_seconds(story.waited_s()), format_fixed(story.final_accuracy(), 3),
                   story.final_hash()});
    table.note("waited to save: the last life's training, for the checkpoint before");
    std::cout << table;
    if (stories.at(1).final_hash() != stories.at(0).final_hash())
        throw std::runtime_error("the killed training has other parameters than the undisturbed");
    std::cout << "The killed training has the parameters of the undisturbed one, to the bit.\n";
}

void write_stories(const std::string& path, const std::vector<Story>& stories) {
    StoryWriter writer(path);
    for (const Story& story : stories)
        writer.write(story);
}

}  // namespace ddp
