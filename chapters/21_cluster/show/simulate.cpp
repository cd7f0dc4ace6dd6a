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
simulator::Cluster node_of(const SimulatorOptions& mine) {
    simulator::Cluster node{1, mine.ranks_per_node, parse_link("--inside", mine.inside),
                            parse_link("--between", mine.between), mine.ports};
    node.nodes_per_leaf = mine.nodes_per_leaf;
    node.oversubscription = mine.oversubscription;
    if (!mine.links.empty()) {
        const MeasuredLinks links = read_links(mine.links);
        node.inside = links.inside;
        node.between = links.between;
    }
    return node;
}

}  // namespace

void add_simulator_options(Options& options, SimulatorOptions& mine) {
    options.add_int("--most-ranks", mine.most_ranks, {1, 8192}, "the last row of the simulation");
    options.with_quick("--most-ranks", [&] { mine.most_ranks = 512; });
    options.add_int("--per-node", mine.ranks_per_node, {1, 64}, "ranks of a simulated node");
    options.add_int("--ports", mine.ports, {1, 64}, "network ports of a simulated node");
    options.add_text("--inside", mine.inside, "a link within a node: BANDWIDTH,LATENCY");
    options.add_text("--between", mine.between, "one port of a node: BANDWIDTH,LATENCY");
    options.add_text("--links", mine.links, "both, from a file of measured links");
    options.add_int("--leaf", mine.nodes_per_leaf, {0, 4096}, "nodes under a leaf switch (0: all)");
    options.add_double("--oversubscription", mine.oversubscription, {1, 64}, "of its uplink");
    options.add_text("--step", mine.step, "a step that 15_overlap has recorded, a CSV file");
    options.add_int("--bytes", mine.bytes, {0, 1 << 30},
                    "of the all-reduces in the first table (0: a bucket of the step)");
    options.add_double("--jitter", mine.jitter, {0, 10}, "of a rank's compute in each step");
    options.add_choice("--delays", mine.delays, {"exponential", "even"},
                       "few long ones, or none above twice the jitter");
    options.add_double("--rank-fails", mine.rank_fails_h, {0.1, 1e9},
                       "hours from one failure of a rank to its next");
    options.add_double("--save", mine.save_s, {1e-3, 1e6}, "seconds that a checkpoint costs");
    options.add_double("--restart", mine.restart_s, {0, 1e6}, "seconds that a restart takes");
}

Simulation simulation_of(const SimulatorOptions& mine, const CommonOptions& common) {
    if (mine.most_ranks < mine.ranks_per_node)
        throw OptionError("--most-ranks must be at least the ranks of one node, --per-node.");
    Question question{
        .node = node_of(mine),
        .most_ranks = mine.most_ranks,
        .step = usual_step(),
        .jitter = mine.jitter,
        .delays = mine.delays == "even" ? simulator::Delays::even : simulator::Delays::exponential,
        .failures = {mine.rank_fails_h * 3600, mine.save_s, mine.restart_s}};
    std::optional<RecordedStep> recorded;
    if (!mine.step.empty()) {
        recorded = read_step(mine.step);
        question.step = recorded->step;
    }
    question.bytes = mine.bytes > 0 ? mine.bytes : question.step.buckets[0].bytes;
    return {question, mine.step, recorded};
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
