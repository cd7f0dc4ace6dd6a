// Measures the cures in a step that needs none of them: every rank uses everything.
#include <iostream>

#include "05_ranks/world.hpp"
#include "17_unused_parameters/training/training_run.hpp"
#include "common/report/bench.hpp"
#include "common/report/csv.hpp"
#include "common/report/stats.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

struct StepCost {
    std::string training;  // "plain DDP", "join", ...
    double seconds = 0;    // median time of a step
    double ratio = 1;      // median ratio to the step of plain DDP in the same round
};

// Measures five trainings, one step of each in turn, `rounds` times. All ranks call it together.
std::vector<StepCost> measure_steps(Rank& rank, std::uint64_t seed, int rounds) {
    constexpr int warm_up = 3;  // the second step rebuilds the buckets
    const std::vector<Route> all(static_cast<std::size_t>(rank.world_size()), Route{0, 1});
    const std::vector<std::pair<std::string, Training>> trainings = {
        {"plain DDP", {.routes = {all}}},
        {"plain DDP, buckets not rebuilt", {.routes = {all}, .rebuilds_buckets = false}},
        {"find_unused_parameters", {.routes = {all}, .unused = Unused::searched}},
        {"static_graph", {.routes = {all}, .unused = Unused::fixed}},
        {"join", {.routes = {all}, .joins = true}}};
    std::vector<std::unique_ptr<TrainingRun>> runs;
    std::vector<RecordedState> recorded(trainings.size());
    std::vector<Measurement> steps;
    for (std::size_t i = 0; i < trainings.size(); i++) {
        runs.push_back(std::make_unique<TrainingRun>(rank, trainings[i].second, seed, recorded[i]));
        steps.push_back(timed([run = runs.back().get()] { run->repeat_step(); }));
    }
    rank.barrier();
    const std::vector<std::vector<double>> samples = interleave(steps, warm_up, rounds);
    std::vector<StepCost> costs;
    for (std::size_t i = 0; i < trainings.size(); i++)
        costs.push_back(
            {trainings[i].first, median(samples[i]), median_ratio(samples[i], samples[0])});
    rank.barrier();
    return costs;
}

// Returns the host's time, in seconds, for one search through the graph of a forward.
double measure_search(Rank& rank, std::uint64_t seed) {
    constexpr int times = 200;
    auto& device = make_run_scoped<Device>(rank, expert_memory);
    Random random(seed);
    Experts model(device, 256, random);
    Tape tape(device);
    const Batch batch = drawn_batch(device, seed, 0, rank.rank(), expert_batch);
    const Variable output = model.forward(tape.constant(batch.images));
    const Parameters all = model.parameters();
    std::size_t found = 0;
    const Stopwatch watch;
    for (int i = 0; i < times; i++)
        found += unreached_from(output, all).size();
    if (found != 0)
        throw std::logic_error("the search takes a used parameter for unused");
    return watch.seconds() / times;
}

void show_costs(Rank& rank, const CommonOptions& common) {
    rank.select_device();
    const std::vector<StepCost> costs = measure_steps(rank, common.seed, common.quick ? 10 : 200);
    const double search_s = measure_search(rank, common.seed);
    if (rank.rank() != 0)
        return;
    Table table("What the cures cost in a step that needs none",
                {"training", "a step", "relative to plain DDP"});
    CsvWriter csv(common.csv, {"way", "ranks", "step_ms", "ratio"});
    for (const StepCost& cost : costs) {
        table.row({cost.training, format_seconds(cost.seconds),
                   common.quick ? "-" : format_fixed(cost.ratio, 2)});
        if (!common.quick)
            csv.row({cost.training, rank.world_size(), cost.seconds * 1e3, cost.ratio});
    }
    table.note(common.quick
                   ? "So few steps show nothing about the costs: run it without --quick."
                   : "relative to plain DDP: the median of the ratios, each to a plain step that "
                     "was measured beside it");
    table.note("The search alone takes " + format_seconds(search_s) + " of the host's time.");
    std::cout << table;
}

}  // namespace

int main(int argc, char** argv) {
    Options parser("bench_cures", "What finding unused parameters, a static graph and join cost.");
    parser.refuse({"--trace"}, "the timeline of a step is in 15_overlap");
    parser.refuse({"--data"}, "the pictures are drawn");
    parser.example("--ranks 2 --link 1GB/s,1ms", "where a message takes its time");
    return run_ranks(argc, argv, parser, [&](World& world, const CommonOptions& common) {
        world.run([&](Rank& rank) { show_costs(rank, common); });
        return 0;
    });
}
