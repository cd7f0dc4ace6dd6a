#pragma once
// The options of the main job.
#include <string>

#include "10_nodes/communicator/node_order.hpp"
#include "15_overlap/hooks_by_name.hpp"

namespace ddp {

struct OverlapOptions {
    std::string model = "mlp";
    int epochs = 5;
    int batch = 64;
    double learning_rate = 0.1;
    int cap = 1;
    bool default_caps = false, no_overlap = false, detect_anomaly = false, graph = false;
    std::string communicator = "native", hook = "average";
    AllReduceOrder order;

    // Adds the options, which are read into this: it must outlive the call of parse().
    void add_to(Options& parser) {
        parser.add_choice("--model", model, {"mlp", "cnn"}, "what to train");
        parser.add_int("--epochs", epochs, {1, 10'000}, "how often to see each sample");
        parser.with_quick("--epochs", [this] { epochs = 1; });
        parser.add_int("--batch", batch, {1, 60'000}, "samples per step and rank");
        parser.add_double("--learning-rate", learning_rate, {1e-12, 1e6},
                          "length of a step at first; it falls with every epoch");
        parser.add_int("--cap", cap, {0, 4096}, "size of a bucket, in MiB (0: each gradient)");
        parser.add_flag("--default-caps", default_caps, "PyTorch's: 1 MiB, then 25 MiB");
        parser.add_flag("--no-overlap", no_overlap, "reduce when backward has ended");
        parser.add_flag("--graph", graph, "launch a step at once, as a CUDA graph");
        parser.add_flag("--detect-anomaly", detect_anomaly,
                        "name rank and parameter of a gradient that is infinite or no number");
        std::vector<std::string> hooks = hook_names();
        hooks.emplace_back("noop");
        parser.add_choice("--hook", hook, hooks, "what is done with a bucket (noop: nothing)");
        parser.add_choice("--communicator", communicator, {"native", "mpi", "nccl"},
                          "the library that carries the gradients");
        order.add_to(parser);
    }
    // Throws OptionError for options that do not go together, or not with the job.
    void require(const Job& job) const {
        order.require(job);
        if (graph && detect_anomaly)
            throw OptionError(
                "--graph leaves the host out of a step, and --detect-anomaly asks it in each: "
                "leave out one of them.");
        if (graph && hook == "power_sgd")
            throw OptionError(
                "--graph repeats one step, and --hook power_sgd makes the first ten steps without "
                "compression: take another hook.");
    }
};

}  // namespace ddp
