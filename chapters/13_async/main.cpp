// Must everyone wait? Training with four algorithms, with a slow worker and without; and what old
// gradients do.
#include <algorithm>
#include <iostream>

#include "05_ranks/world.hpp"
#include "11_data_parallel/replica.hpp"
#include "13_async/show/experiment_report.hpp"
#include "13_async/show/staleness.hpp"

namespace {

using namespace ddp;

void add_options(Options& parser, ExperimentOptions& options, double& compute_ms) {
    parser.add_int("--gradients", options.gradients, {1, 1'000'000},
                   "gradients of each training run");
    parser.with_quick("--gradients", [&] { options.gradients = 96; });
    parser.add_int("--batch", options.batch, {1, 256}, "samples per gradient");
    parser.add_double("--learning-rate", options.learning_rate, {1e-6, 10},
                      "of a step with the gradients of all workers");
    parser.add_double("--compute", compute_ms, {0, 1000}, "milliseconds that a step sleeps");
    parser.add_double("--slow", options.slow, {1, 100},
                      "how many times as long the slow worker sleeps");
    parser.add_int("--bound", options.bound, {0, 1000}, "steps that a worker may be ahead");
    parser.add_int("--every", options.every, {1, 1'000'000},
                   "steps between two averages of local SGD");
    parser.refuse({"--link", "--trace"},
                  "this chapter neither simulates a link nor draws a timeline");
    parser.example("--ranks 2", "a server and one worker");
    parser.example("--bound 0", "a bound with which all workers wait for all");
    parser.example("--slow 20", "a very slow worker");
}

int run(World& world, const CommonOptions& common, ExperimentOptions options) {
    options.seed = common.seed;
    if (options.gradients < world.world_size())
        throw OptionError("--gradients " + std::to_string(options.gradients) +
                          " is less than one for each of " + std::to_string(world.world_size()) +
                          " ranks: use more.");
    if (world.world_size() == 1) {
        std::cout << "One rank has no other rank to wait for: try --ranks 2, a server and a "
                     "worker.\n\n";
    } else {
        if (world.job().has_several_nodes())
            throw OptionError(
                "The server's kernels can only reach ranks on the same node: use one node.");
        const FashionMnist data = load_data(world, common);
        world.run([&](Rank& rank) {
            rank.select_device();
            show_experiment(rank, data, options, common.csv);
        });
    }
    if (world.has_rank_0()) {
        show_staleness();
        show_learning_rates();
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    ExperimentOptions options;
    double compute_ms = 3;
    Options parser("async",
                   "Must everyone wait? A parameter server, and workers that do not wait.");
    add_options(parser, options, compute_ms);
    return run_ranks(argc, argv, parser, [&](World& world, const CommonOptions& common) {
        options.compute_s = compute_ms * 1e-3;
        return run(world, common, options);
    });
}
