#include "tests/bench/17_unused_parameters/costs.hpp"

#include "common/report/bench.hpp"
#include "common/report/stats.hpp"

namespace ddp {

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

}  // namespace ddp
