// What will a thousand ranks do? A simulator: what a training would do on a cluster that is not
// there. Here are its options: which cluster, which step, which failures.
#include <optional>

#include "05_ranks/world.hpp"
#include "21_cluster/show/predictions.hpp"
#include "common/report/options.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

struct SimulatorOptions {
    int ranks_per_node = 8, ports = 8, max_ranks = 4096, nodes_per_leaf = 0;
    double oversubscription = 1, jitter = 0.03, rank_fails_h = 50'000, save_s = 60, restart_s = 600;
    std::string inside = "370GB/s,2us", between = "48GB/s,14us", links, step;
    std::string delays = "exponential";
    int bytes = 0;
};

// A question, and the recorded step that it is about, if it is about one.
struct Simulation {
    Question question;
    std::string step_file;
    std::optional<RecordedStep> recorded;
};

// 336 million parameters in 16 bits, which are 672 MB in buckets of 25 MiB: 110 ms on one rank.
simulator::Step usual_step() {
    constexpr int buckets = 26;
    constexpr double backward_s = 0.073;
    return {.forward_s = 0.037,
            .buckets = std::vector<simulator::Bucket>(buckets, {backward_s / buckets, 25 << 20})};
}

// The nodes that are asked about. A file of measured links takes the place of both options.
simulator::Cluster node_of(const SimulatorOptions& options) {
    simulator::Cluster node{1, options.ranks_per_node, parse_link("--inside", options.inside),
                            parse_link("--between", options.between), options.ports};
    node.nodes_per_leaf = options.nodes_per_leaf;
    node.oversubscription = options.oversubscription;
    if (!options.links.empty()) {
        const MeasuredLinks links = read_links(options.links);
        node.inside = links.inside;
        node.between = links.between;
    }
    return node;
}

void add_simulator_options(Options& parser, SimulatorOptions& options) {
    parser.add_int("--most-ranks", options.max_ranks, {1, 8192}, "the last row of the simulation");
    parser.with_quick("--most-ranks", [&] { options.max_ranks = 512; });
    parser.add_int("--per-node", options.ranks_per_node, {1, 64}, "ranks of a simulated node");
    parser.add_int("--ports", options.ports, {1, 64}, "network ports of a simulated node");
    parser.add_text("--inside", options.inside, "a link within a node: BANDWIDTH,LATENCY");
    parser.add_text("--between", options.between, "one port of a node: BANDWIDTH,LATENCY");
    parser.add_text("--links", options.links, "both, from a file of measured links");
    parser.add_int("--leaf", options.nodes_per_leaf, {0, 4096},
                   "nodes under a leaf switch (0: all)");
    parser.add_double("--oversubscription", options.oversubscription, {1, 64}, "of its uplink");
    parser.add_text("--step", options.step, "a step that 15_overlap has recorded, a CSV file");
    parser.add_int("--bytes", options.bytes, {0, 1 << 30},
                   "of the all-reduces in the first table (0: a bucket of the step)");
    parser.add_double("--jitter", options.jitter, {0, 10}, "of a rank's compute in each step");
    parser.add_choice("--delays", options.delays, {"exponential", "even"},
                      "few long ones, or none above twice the jitter");
    parser.add_double("--rank-fails", options.rank_fails_h, {0.1, 1e9},
                      "hours from one failure of a rank to its next");
    parser.add_double("--save", options.save_s, {1e-3, 1e6}, "seconds that a checkpoint costs");
    parser.add_double("--restart", options.restart_s, {0, 1e6}, "seconds that a restart takes");
}

// Returns what the options ask for. Throws OptionError if they do not fit together, and DataError
// if a file cannot be read.
Simulation simulation_of(const SimulatorOptions& options, const CommonOptions& common) {
    if (options.max_ranks < options.ranks_per_node)
        throw OptionError("--most-ranks must be at least the ranks of one node, --per-node.");
    Question question{.node = node_of(options),
                      .max_ranks = options.max_ranks,
                      .step = usual_step(),
                      .jitter = options.jitter,
                      .delays = options.delays == "even" ? simulator::Delays::even
                                                         : simulator::Delays::exponential,
                      .failures = {options.rank_fails_h * 3600, options.save_s, options.restart_s}};
    std::optional<RecordedStep> recorded;
    if (!options.step.empty()) {
        recorded = read_step(options.step);
        question.step = recorded->step;
    }
    question.bytes = options.bytes > 0 ? options.bytes : question.step.buckets[0].bytes;
    return {question, options.step, recorded};
}

}  // namespace
}  // namespace ddp

int main(int argc, char** argv) {
    using namespace ddp;
    SimulatorOptions options;
    Options parser("cluster", "What will a thousand ranks do? A simulated cluster.");
    add_simulator_options(parser, options);
    parser.refuse({"--seed", "--data", "--trace"}, "nothing here is drawn, read or recorded");
    parser.refuse({"--link"}, "the simulator has links of its own: --inside and --between");
    parser.example("--per-node 4 --ports 1 --inside 5GB/s,5us --between 1Gbit/s,50us",
                   "a class's cluster");
    parser.example("--step out/overlap_timeline.csv", "a training of your own, on that cluster");
    return run_ranks(argc, argv, parser, [&](World& world, const CommonOptions& common) {
        const Simulation simulation = simulation_of(options, common);  // or refuses now
        if (!world.has_rank_0())
            return 0;
        if (simulation.recorded)
            show_recorded_step(simulation.step_file, *simulation.recorded);
        const std::vector<Comparison> comparisons = all_comparisons();
        CsvWriter file(beside(common.csv, "simulated"), prediction_columns());
        show_scaling(simulation.question, comparisons, file);
        show_failures(simulation.question, comparisons, file);
        show_published(comparisons, file);
        return 0;
    });
}
