#include "22_sharded/show/tables.hpp"

#include <algorithm>
#include <iostream>
#include <map>

#include "15_overlap/show/timeline_report.hpp"
#include "common/report/csv.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr std::size_t columns = 80;              // of the drawing
constexpr int quick_steps = 3, usual_steps = 9;  // of each kind; the first one warms up

using Timeline = std::vector<StreamSpan>;

double begin_of(const Timeline& step) {
    return std::ranges::min(step, {}, &StreamSpan::begin_s).begin_s;
}
double length_of(const Timeline& step) {
    return std::ranges::max(step, {}, &StreamSpan::end_s).end_s - begin_of(step);
}

// Returns the timelines of all ranks in the step that takes the slowest rank as long as the median.
Timeline typical_step(Rank& rank, const std::vector<Timeline>& steps) {
    std::vector<std::pair<double, std::size_t>> lengths;
    for (std::size_t i = 1; i < steps.size(); i++)
        lengths.emplace_back(rank.max_over_ranks(length_of(steps[i])), i);
    std::ranges::sort(lengths);
    return gather(rank, steps[lengths[lengths.size() / 2].second]);
}

// Returns so many samples that computing takes longer than starting a kernel. Ranks of one node
// share its cores: the more ranks, the fewer for each.
int samples_of_step(Rank& rank, const LabelledImages& images, const StagePlan& plan, bool quick) {
    if (plan.model != "mlp")
        return std::max(plan.batch, (quick ? 16 : 128) / rank.world_size());
    const int there_are = static_cast<int>(images.count()) / rank.world_size();
    return std::min(std::max(plan.batch, (quick ? 128 : 1024) / rank.world_size()), there_are);
}

// Measures what the ranks compute in a step, without a link.
LinkSpeed link_as_slow_as_computing(Rank& rank, const LabelledImages& images,
                                    const StagePlan& plan) {
    const StageResult result = train_at_stage(rank, images, plan);
    double computing_s = 0;
    for (const StreamSpan& span : typical_step(rank, result.timelines))
        if (span.track == "compute" && !span.what.starts_with("waiting"))
            computing_s += (span.end_s - span.begin_s) / rank.world_size();
    return {static_cast<double>(result.received_per_step) / computing_s, 0};
}

// Returns the place of each unit in the order in which rank 0 comes to them.
std::map<std::string, char> marks_of(const Timeline& step) {
    std::map<std::string, char> marks;
    for (const StreamSpan& span : step)
        if (span.rank == 0 && span.what.starts_with("forward "))
            marks.emplace(span.what.substr(8),
                          "123456789abcdefghijklmnopqrstuvwxyz"[marks.size() % 35]);
    return marks;
}

// Draws what rank 0 does under one of these names, and the mark of the unit with which it does it.
std::string line_of(const Timeline& step, double column_s, const std::vector<std::string>& names) {
    std::string line(columns, ' ');
    const auto marks = marks_of(step);
    const double zero = begin_of(step);
    for (const StreamSpan& span : step) {
        const std::string name = span.what.substr(0, span.what.find(' '));
        if (span.rank != 0 || std::ranges::find(names, name) == names.end())
            continue;
        const auto unit = marks.find(span.what.substr(std::min(name.size() + 1, span.what.size())));
        const auto column = [&](double time_s) {
            return std::min(static_cast<std::size_t>((time_s - zero) / column_s + 0.5), columns);
        };
        const std::size_t begin = column(span.begin_s), end = column(span.end_s);
        line.replace(begin, end - begin, end - begin, unit == marks.end() ? '*' : unit->second);
    }
    return line.substr(0, line.find_last_not_of(' ') + 1);
}

void draw(const Timeline& with, const Timeline& without, const std::string& conditions) {
    const double column_s = std::max(length_of(with), length_of(without)) / columns;
    std::cout << "\nOne step of rank 0 at stage 3: " << conditions << "\n";
    for (const auto& [title, step] : {std::pair{"with prefetch", with}, {"without", without}}) {
        std::cout << title << ": " << format_seconds(length_of(step)) << "\n"
                  << "  compute  " << line_of(step, column_s, {"forward", "backward", "optimizer"})
                  << "\n  gather   " << line_of(step, column_s, {"gather"}) << "\n  reduce   "
                  << line_of(step, column_s, {"reduce"}) << "\n";
    }
    std::cout
        << "1 is the first unit, and * the loss or the optimizer. Where compute has a gap, it "
           "waits.\n";
}

// Returns why there is nothing to draw; empty if there is.
std::string reason_to_skip(const Rank& rank) {
    if (rank.world_size() == 1)
        return "One rank gathers nothing: there is no timeline. Try --ranks 2.";
    if (rank.job().has_several_nodes())
        return "These ranks are on several nodes: a link is simulated on one only, so there is no "
               "timeline.";
    return "";
}

}  // namespace

void show_timeline(Rank& rank, const LabelledImages& images, StagePlan plan,
                   const CommonOptions& common) {
    const bool prints = rank.rank() == 0;
    if (const std::string reason = reason_to_skip(rank); !reason.empty()) {
        if (prints)
            std::cout << reason << "\n";
        return;
    }
    plan.stage = 3;
    plan.steps = common.quick ? quick_steps : usual_steps;
    plan.batch = samples_of_step(rank, images, plan, common.quick);
    plan.is_watched = true;
    plan.link = common.link ? common.link : link_as_slow_as_computing(rank, images, plan);
    TwoSteps steps;
    for (const bool prefetches : {true, false}) {
        plan.prefetch = prefetches;
        (prefetches ? steps.usual : steps.without_overlap) =
            typical_step(rank, train_at_stage(rank, images, plan).timelines);
    }
    if (!prints)
        return;
    draw(steps.usual, steps.without_overlap,
         std::to_string(plan.batch) + " samples, over a link of " +
             format_bandwidth(plan.link->bytes_per_second));
    write_timeline(common.csv, steps);
}

}  // namespace ddp
