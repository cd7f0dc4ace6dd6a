// Must everyone wait? A parameter server whose workers do not wait for each other, the
// effect of old gradients, and training with four algorithms, with a slow worker and without.
#include <algorithm>
#include <iostream>

#include "05_ranks/world.hpp"
#include "11_data_parallel/replica.hpp"
#include "13_async/show/experiment_report.hpp"
#include "13_async/show/staleness.hpp"

namespace {

using namespace ddp;

void add_options(Options& options, ExperimentOptions& mine, double& compute_ms) {
    options.add_int("--gradients", mine.gradients, {1, 1'000'000},
                    "gradients of each training run");
    options.with_quick("--gradients", [&] { mine.gradients = 96; });
    options.add_int("--batch", mine.batch, {1, 256}, "samples per gradient");
    options.add_double("--learning-rate", mine.learning_rate, {1e-6, 10},
                       "of a step with the gradients of all workers");
    options.add_double("--compute", compute_ms, {0, 1000}, "milliseconds that a step sleeps");
    options.add_double("--slow", mine.slow, {1, 100},
                       "how many times as long the slow worker sleeps");
    options.add_int("--bound", mine.bound, {0, 1000}, "steps that a worker may be ahead");
    options.add_int("--every", mine.every, {1, 1'000'000},
                    "steps between two averages of local SGD");
    options.refuse({"--link", "--trace"},
                   "this chapter neither simulates a link nor draws a timeline");
    options.example("--ranks 2", "a server and one worker");
    options.example("--bound 0", "a bound with which all workers wait for all");
    options.example("--slow 20", "a very slow worker");
}

int run(World& world, const CommonOptions& common, ExperimentOptions mine) {
    mine.seed = common.seed;
    if (mine.gradients < world.world_size())
        throw OptionError("--gradients " + std::to_string(mine.gradients) +
                          " is less than one for each of " + std::to_string(world.world_size()) +
                          " ranks: use more.");
    if (world.has_rank_0()) {
        show_staleness();
        show_synchronisations();
    }
    if (world.world_size() == 1) {
        std::cout
            << "One rank has no other rank to wait for: try --ranks 2, a server and a worker.\n";
        return 0;
    }
    if (world.job().has_several_nodes())
        throw OptionError(
            "The server's kernels can only reach ranks on the same node: use one node.");
    const FashionMnist data = load_data(world, common);
    world.run([&](Rank& rank) {
        rank.select_device();
        show_experiment(rank, data, mine, common.csv);
    });
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    ExperimentOptions mine;
    double compute_ms = 3;
    Options options("async",
                    "Must everyone wait? A parameter server, and workers that do not wait.");
    add_options(options, mine, compute_ms);
    return run_ranks(argc, argv, options, [&](World& world, const CommonOptions& common) {
        mine.compute_s = compute_ms * 1e-3;
        return run(world, common, mine);
    });
}
