#include "15_overlap/show/timeline_report.hpp"

#include <algorithm>
#include <iostream>
#include <limits>
#include <map>

#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

double first_begin(const std::vector<StreamSpan>& spans) {
    double begin = std::numeric_limits<double>::infinity();
    for (const StreamSpan& span : spans)
        begin = std::min(begin, span.begin_s);
    return begin;
}

struct StepOfRank {
    double begin_s = std::numeric_limits<double>::infinity(), end_s = 0;
    double compute_s = 0, backward_s = 0, communication_s = 0, exposed_s = 0;
};

std::map<int, StepOfRank> steps_by_rank(const std::vector<StreamSpan>& spans) {
    std::map<int, StepOfRank> ranks;
    for (const StreamSpan& span : spans) {
        const double length_s = span.end_s - span.begin_s;
        StepOfRank& step = ranks[span.rank];
        step.begin_s = std::min(step.begin_s, span.begin_s);
        step.end_s = std::max(step.end_s, span.end_s);
        if (span.what == waiting_for_gradients)
            step.exposed_s += length_s;
        else
            (span.track == "compute" ? step.compute_s : step.communication_s) += length_s;
        if (span.what.starts_with("backward"))
            step.backward_s += length_s;
    }
    return ranks;
}

}  // namespace

void show_timeline(const TwoSteps& steps, const std::filesystem::path& csv,
                   const std::string& note) {
    Table table("One step, and one without overlap", {"overlap", "rank", "the step", "computing",
                                                      "backward", "communicating", "exposed"});
    CsvWriter file(
        csv.empty() ? csv : beside(csv, "steps"),
        {"overlap", "rank", "step_s", "compute_s", "backward_s", "communication_s", "exposed_s"});
    const auto add = [&](const std::string& overlap, const std::vector<StreamSpan>& spans) {
        for (const auto& [rank, step] : steps_by_rank(spans)) {
            const double whole_s = step.end_s - step.begin_s;
            table.row({overlap, std::to_string(rank), format_seconds(whole_s),
                       format_seconds(step.compute_s), format_seconds(step.backward_s),
                       format_seconds(step.communication_s), format_seconds(step.exposed_s)});
            file.row({overlap, rank, whole_s, step.compute_s, step.backward_s, step.communication_s,
                      step.exposed_s});
        }
    };
    add("as asked", steps.usual);
    add("none", steps.without_overlap);
    table.note(
        "Computing includes backward. Exposed: how long the compute stream waits for gradients. "
        "Communicating includes waiting for other ranks.");
    if (!note.empty())
        table.note(note);
    std::cout << table << "\n";
}

void write_timeline(const std::filesystem::path& csv, const TwoSteps& steps,
                    const std::string& name) {
    if (csv.empty())
        return;
    CsvWriter file(beside(csv, name), {"overlap", "rank", "stream", "name", "begin_ms", "end_ms"});
    const auto add = [&](const char* overlap, const std::vector<StreamSpan>& spans) {
        const double zero = first_begin(spans);
        for (const StreamSpan& span : spans)
            file.row({overlap, span.rank, span.track, span.what, (span.begin_s - zero) * 1e3,
                      (span.end_s - zero) * 1e3});
    };
    add("on", steps.usual);
    add("off", steps.without_overlap);
}

void show_watched_steps(const TwoSteps& steps, const CommonOptions& common, Trace& trace) {
    const bool shares_cores = kernels_run_on_cpu && !common.link;
    show_timeline(steps, common.csv,
                  shares_cores ? "Without a link, overlap hides little on a CPU: the cores that "
                                 "add and copy the buckets are those that compute backward."
                               : "");
    write_timeline(common.csv, steps);
    add_to_trace(trace, steps.usual);
    trace.write();
}

}  // namespace ddp
