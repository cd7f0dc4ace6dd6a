#include "15_overlap/show/linked_steps.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <system_error>

#include "03_network/models.hpp"
#include "05_ranks/cores.hpp"
#include "15_overlap/show/timeline_report.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr int layer_width = 512;
constexpr int layer_count = 8;
constexpr int quick_steps = 3, usual_steps = 20;  // of each kind

// The measured steps of one kind.
struct StepsOfKind {
    std::vector<StepParts> parts;
    std::vector<std::vector<StreamSpan>> spans;  // of this rank

    void add(TimedTraining& training) {
        parts.push_back(training.run(1));
        spans.push_back(training.spans());
    }

    // Returns the timeline of the step whose length is nearest to the median: of the same step on
    // every rank. All ranks call it together.
    std::vector<StreamSpan> typical(Rank& rank) const {
        const double middle = medians(parts).whole;
        const auto distance = [&](const StepParts& step) { return std::abs(step.whole - middle); };
        const auto nearest = std::ranges::min_element(parts, {}, distance);
        return gather(rank, spans[static_cast<std::size_t>(nearest - parts.begin())]);
    }
};

// A training over a link, or without one.
struct LayerTraining {
    LayerTraining(Rank& rank, Device& device, Random& random, int batch, std::size_t cap_bytes,
                  const CommunicatorOptions& options = {})
        : model(make_mlp(device, random, std::vector<int>(layer_count + 1, layer_width))),
          communicator(make_native_communicator(rank, ddp_arena_bytes(*model), options)),
          timed(*communicator, device, *model, random,
                {{layer_width}, layer_width, batch, false, {.bucket_cap_bytes = cap_bytes}}) {}

    const std::unique_ptr<Sequential> model;
    const std::unique_ptr<Communicator> communicator;
    TimedTraining timed;
};

// Measures backward without a link and with nothing beside it, and returns the link on which the
// all-reduce of all gradients takes as long.
LinkSpeed choose_link(Rank& rank, Device& device, Random& random, int batch) {
    constexpr int warm_up = 2, counted = 5;
    LayerTraining training(rank, device, random, batch, layer_cap_bytes);
    training.timed.set_overlap(false);
    training.timed.run(warm_up);
    StepsOfKind steps;
    for (int i = 0; i < counted; i++)
        steps.add(training.timed);
    return link_as_slow_as(medians(steps.parts).backward, training.timed.gradient_bytes(),
                           rank.world_size());
}

void print(int ranks, const LinkSpeed& link, const LinkedSteps& steps) {
    const auto& [off, on, timelines] = steps;
    Table table("A step over a simulated link as slow as backward, " +
                    format_bandwidth(link.bytes_per_second) + ", on " +
                    format_count(ranks, "rank") + " (medians of " + std::to_string(on.size()) + ")",
                {"overlap", "the step", "backward", "communication", "exposed", "hidden"});
    const auto row = [&](const std::string& overlap, const StepParts& step,
                         const std::string& hidden) {
        table.row({overlap, format_seconds(step.whole), format_seconds(step.backward),
                   format_seconds(step.communication), format_seconds(step.exposed), hidden});
    };
    const bool is_quick = on.size() < usual_steps;
    row("off", medians(off), "-");
    row("on", medians(on), is_quick ? "-" : format_percent(hidden_share(off, on)));
    table.note("Eight linear layers, 512 wide, made-up samples, a bucket for each layer.");
    table.note(is_quick
                   ? "So few steps do not show how much overlap hides: run it without --quick."
                   : "Hidden: the time that overlap saves, as a share of the most that it could "
                     "save.");
    std::cout << table << "\n";
}

// Returns why there is nothing to measure; empty if there is.
std::string reason_to_skip(const Rank& rank, const CommonOptions& common) {
    if (rank.world_size() == 1)
        return "One rank sends nothing, so there is nothing to hide: try --ranks 4.";
    if (rank.job().has_several_nodes())
        return "These ranks are on several nodes, and a link can be simulated on one node only.";
    if (common.link)
        return "The steps of this run went over your own --link; no other link is measured.";
    return "";
}

void show_on(Rank& rank, const CommonOptions& common) {
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
    // Ranks of one node share its cores: the more ranks, the fewer samples for each.
    const int batch = std::max(8, (common.quick ? 128 : 1024) / rank.world_size());
    auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
    Random random(common.seed);
    const LinkSpeed link = choose_link(rank, device, random, batch);
    const LinkedSteps steps =
        measure_linked_steps(rank, device, random, batch, link, layer_cap_bytes,
                             common.quick ? quick_steps : usual_steps);
    if (!prints)
        return;
    print(rank.world_size(), link, steps);
    write_timeline(common.csv, steps.timelines, name);
}

}  // namespace

LinkedSteps measure_linked_steps(Rank& rank, Device& device, Random& random, int batch,
                                 const LinkSpeed& link, std::size_t cap_bytes, int steps) {
    LayerTraining training(rank, device, random, batch, cap_bytes, {.link = link});
    training.timed.run(2);  // the second step has the buckets as they stay
    StepsOfKind off, on;
    for (int i = 0; i < steps; i++) {
        training.timed.set_overlap(false);
        off.add(training.timed);
        training.timed.set_overlap(true);
        on.add(training.timed);
    }
    return {off.parts, on.parts, {on.typical(rank), off.typical(rank)}};
}

void show_linked_steps(World& world, const CommonOptions& common) {
    const auto show = [&](Rank& rank) { show_on(rank, common); };
    if (!kernels_run_on_cpu || world.job().has_processes || usable_cores() == 1)
        return world.run(show);
    CommonOptions fewer = common;
    fewer.ranks = std::min(world.world_size(), usable_cores());
    World(fewer).run(show);
}

}  // namespace ddp
