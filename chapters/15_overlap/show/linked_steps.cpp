#include "15_overlap/show/linked_steps.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <system_error>

#include "03_network/models.hpp"
#include "common/report/bench.hpp"
#include "common/report/csv.hpp"
#include "common/report/stats.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr int layer_width = 512;
constexpr int layer_count = 8;
constexpr std::size_t layer_cap_bytes = 1 << 20;  // closes a bucket at each layer
constexpr int quick_steps = 3, usual_steps = 20;  // of each kind

TimedOptions options_of(int batch) {
    return {{layer_width}, layer_width, batch, false, {.bucket_cap_bytes = layer_cap_bytes}};
}

// The measured steps of one kind.
struct StepsOfKind {
    std::vector<StepParts> parts;
    std::vector<std::vector<StreamSpan>> spans;  // of this rank

    void add(TimedTraining& training) {
        parts.push_back(training.run(1));
        spans.push_back(training.spans());
    }

    double median_of(double StepParts::*part) const {
        std::vector<double> values;
        for (const StepParts& step : parts)
            values.push_back(step.*part);
        return median(values);
    }

    StepMedians medians() const {
        return {median_of(&StepParts::whole), median_of(&StepParts::backward),
                median_of(&StepParts::communication), median_of(&StepParts::exposed)};
    }

    // Returns the step whose length is nearest to the median: the same one on every rank.
    std::size_t typical() const {
        const double middle = median_of(&StepParts::whole);
        const auto distance = [&](const StepParts& step) { return std::abs(step.whole - middle); };
        return static_cast<std::size_t>(std::ranges::min_element(parts, {}, distance) -
                                        parts.begin());
    }
};

std::unique_ptr<Sequential> make_layers(Device& device, Random& random) {
    return make_mlp(device, random, std::vector<int>(layer_count + 1, layer_width));
}

// Measures backward without a link and with nothing beside it, and returns the link on which the
// all-reduce of all gradients takes as long.
LinkSpeed choose_link(Rank& rank, Device& device, Random& random, int batch) {
    constexpr int warm_up = 2, counted = 5;
    const auto model = make_layers(device, random);
    const auto communicator = make_native_communicator(rank, ddp_arena_bytes(*model));
    TimedTraining training(*communicator, device, *model, random, options_of(batch));
    training.set_overlap(false);
    training.run(warm_up);
    StepsOfKind steps;
    for (int i = 0; i < counted; i++)
        steps.add(training);
    return link_as_slow_as(steps.median_of(&StepParts::backward), training.gradient_bytes(),
                           rank.world_size());
}

}  // namespace

LinkedSteps measure_linked_steps(Rank& rank, int batch, int steps, std::uint64_t seed) {
    auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
    Random random(seed);
    LinkedSteps result;
    result.steps = steps;
    result.link = choose_link(rank, device, random, batch);
    const auto model = make_layers(device, random);
    const auto communicator =
        make_native_communicator(rank, ddp_arena_bytes(*model), {.link = result.link});
    TimedTraining training(*communicator, device, *model, random, options_of(batch));
    training.run(2);  // the second step has the buckets as they stay
    StepsOfKind off, on;
    for (int i = 0; i < steps; i++) {
        training.set_overlap(false);
        off.add(training);
        training.set_overlap(true);
        on.add(training);
    }
    result.off = off.medians();
    result.on = on.medians();
    result.hidden = hidden_share(off.parts, on.parts);
    result.timelines = {gather(rank, on.spans[on.typical()]),
                        gather(rank, off.spans[off.typical()])};
    return result;
}

namespace {

// Returns why there is nothing to measure; empty if there is.
std::string reason_to_skip(const Rank& rank, const CommonOptions& common) {
    if (rank.world_size() == 1)
        return "One rank sends nothing, so there is nothing to hide: try --ranks 4.";
    if (rank.job().has_several_hosts())
        return "These ranks are on several hosts, and a link can be simulated on one host only.";
    if (common.link)
        return "The steps of this run went over your own --link; no other link is measured.";
    return "";
}

void print(const LinkedSteps& measured) {
    Table table("A step over a simulated link as slow as backward, " +
                    format_bandwidth(measured.link.bytes_per_second) + " (medians of " +
                    std::to_string(measured.steps) + ")",
                {"overlap", "the step", "backward", "communication", "waiting", "hidden"});
    const auto row = [&](const std::string& overlap, const StepMedians& step,
                         const std::string& hidden) {
        table.row({overlap, format_seconds(step.whole), format_seconds(step.backward),
                   format_seconds(step.communication), format_seconds(step.exposed), hidden});
    };
    row("off", measured.off, "-");
    const bool is_quick = measured.steps < usual_steps;
    row("on", measured.on, is_quick ? "-" : format_percent(measured.hidden));
    table.note("Eight linear layers, 512 wide, made-up samples, a bucket for each layer.");
    table.note(is_quick
                   ? "So few steps show how a step is made up, and not how much overlap hides: run "
                     "it without --quick."
                   : "Hidden: the time that overlap saves, as a share of the most that it could "
                     "save.");
    std::cout << table << "\n";
}

}  // namespace

void show_linked_steps(Rank& rank, const CommonOptions& common) {
    const bool prints = rank.rank() == 0;
    const std::string name = "link_timeline";
    if (const std::string reason = reason_to_skip(rank, common); !reason.empty()) {
        std::error_code ignored;
        if (prints && !common.csv.empty())
            std::filesystem::remove(beside(common.csv, name), ignored);
        if (prints)
            std::cout << reason << "\n\n";
        return;
    }
    // Ranks of one host share its cores: the more ranks, the fewer samples for each.
    const int samples = common.quick ? 128 : 1024;
    const int batch = std::max(8, samples / rank.world_size());
    const LinkedSteps measured =
        measure_linked_steps(rank, batch, common.quick ? quick_steps : usual_steps, common.seed);
    if (!prints)
        return;
    print(measured);
    write_timeline(common.csv, measured.timelines, name);
}

}  // namespace ddp
