#include "21_cluster/show/simulate.hpp"

#include "21_cluster/measured/own_files.hpp"
#include "21_cluster/show/predictions.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

simulator::Link parse_link(const std::string& option, const std::string& text) {
    const std::size_t comma = text.find(',');
    const auto bandwidth = parse_bandwidth(text.substr(0, comma));
    const auto latency = parse_seconds(comma == text.npos ? "" : text.substr(comma + 1));
    if (!bandwidth || *bandwidth < 1 || !latency)
        throw OptionError(option + " must be BANDWIDTH,LATENCY such as 48GB/s,14us, but is '" +
                          text + "'.");
    return simulator::straight_link(*latency, *bandwidth);
}

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

}  // namespace

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

void simulate(const Simulation& simulation, const CommonOptions& common) {
    const Question& question = simulation.question;
    if (simulation.recorded)
        show_recorded_step(simulation.step_file, *simulation.recorded);
    const std::vector<Comparison> comparisons = all_comparisons();
    CsvWriter file(beside(common.csv, "simulated"), prediction_columns());
    show_scaling(question, comparisons, file);
    show_failures(question, comparisons, file);
    show_published(comparisons, file);
}

}  // namespace ddp
