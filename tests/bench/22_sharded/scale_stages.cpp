// The cluster: nodes of eight GPUs, each with a port of 400 Gbit/s, and the links of chapter 21. A
// GPU makes 400 TFLOP/s in 16-bit numbers: 40 % of what an H100's data sheet promises. The model:
// 32 blocks of 202 million parameters (Llama 2 7B), 4,096 tokens per rank.
#include "tests/bench/22_sharded/scale_stages.hpp"

#include <iostream>

#include "21_cluster/simulated_sharded.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

using simulator::Algorithm;
using simulator::Cluster;
using simulator::Half;
using simulator::half_s;
using simulator::Halves;
using simulator::sharded_step_s;
using simulator::ShardedStep;

constexpr int node_ranks = 8, block_count = 32;
constexpr double block_parameters = 202e6, parameter_bytes = 2, step_tokens = 4096;
constexpr double gpu_operations_per_s = 400e12, port_bytes_per_s = 48e9, inside_bytes_per_s = 370e9;

Cluster cluster_of(int nodes, int ranks_per_node) {
    return {.nodes = nodes,
            .ranks_per_node = ranks_per_node,
            .inside = simulator::straight_link(2e-6, inside_bytes_per_s),
            .between = simulator::straight_link(14e-6, port_bytes_per_s),
            .ports = ranks_per_node};
}

ShardedStep large_step() {
    const double forward_s = 2 * block_parameters * step_tokens / gpu_operations_per_s;
    ShardedStep step;
    step.blocks.assign(block_count, {forward_s, 2 * forward_s, block_parameters * parameter_bytes});
    return step;
}

// All blocks are alike, so each collective is simulated once.
Halves halves_of(double reduce_scatter_s, double all_gather_s) {
    return {[=](double) { return reduce_scatter_s; }, [=](double) { return all_gather_s; }};
}

// All ranks share one model.
Halves over_all(Algorithm algorithm, int nodes) {
    const Cluster cluster = cluster_of(nodes, node_ranks);
    const double bytes = block_parameters * parameter_bytes;
    return halves_of(half_s(algorithm, cluster, bytes, Half::reduce_scatter),
                     half_s(algorithm, cluster, bytes, Half::all_gather));
}

// The ranks of a node share one. Each rail adds up its part over the nodes.
Halves within_nodes(int nodes) {
    const Cluster node = cluster_of(1, node_ranks);
    const double bytes = block_parameters * parameter_bytes;
    const double rail_s =
        nodes == 1
            ? 0
            : simulator::all_reduce_s(Algorithm::flat, cluster_of(nodes, 1), bytes / node_ranks);
    return halves_of(half_s(Algorithm::flat, node, bytes, Half::reduce_scatter) + rail_s,
                     half_s(Algorithm::flat, node, bytes, Half::all_gather));
}

}  // namespace

void show_scaled_stages(int max_ranks, const std::filesystem::path& csv) {
    const ShardedStep step = large_step();
    double compute_s = 0;
    for (const auto& block : step.blocks)
        compute_s += block.forward_s + block.backward_s;
    CsvWriter file(csv, {"ranks", "sharding", "efficiency", "step_s"});
    Table table("Weak-scaling efficiency of a GPU (simulated): a model of 6.5 billion parameters",
                {"ranks", "DDP", "stage 1, exposed", "stage 3", "stage 3, one ring", "hybrid"});
    for (int nodes = 1; nodes * node_ranks <= max_ranks; nodes *= 8) {
        const int ranks = nodes * node_ranks;
        const Halves on_levels =
            over_all(nodes == 1 ? Algorithm::flat : Algorithm::two_level, nodes);
        const Halves in_ring = over_all(Algorithm::flat, nodes);
        const std::pair<const char*, double> steps[] = {
            {"DDP", sharded_step_s(step, 0, ranks, on_levels)},
            {"stage 1, exposed", sharded_step_s(step, 1, ranks, on_levels)},
            {"stage 3", sharded_step_s(step, 3, ranks, on_levels)},
            {"stage 3, one ring", sharded_step_s(step, 3, ranks, in_ring)},
            {"hybrid", sharded_step_s(step, 3, node_ranks, within_nodes(nodes))}};
        std::vector<std::string> row{std::to_string(ranks)};
        for (const auto& [name, seconds] : steps) {
            row.push_back(format_fixed(compute_s / seconds, 2));
            file.row({ranks, name, compute_s / seconds, seconds});
        }
        table.row(row);
    }
    table.note(
        "Nodes of 8 GPUs of 400 TFLOP/s, 370 GB/s inside, a port of 48 GB/s for each GPU; 4,096 "
        "tokens per GPU, 2 bytes for a parameter and for a gradient. Without the optimizer's step. "
        "On two levels, unless it says one ring. DDP would take more memory than an H100 has. The "
        "all-gather of stage 1 is alone, as in this book; Megatron's runs beside forward.");
    std::cout << table;
}

void show_free_batches(double operations_per_s, double bytes_per_s, int ranks) {
    Table table("How large must a batch be for stage 3 to cost nothing?",
                {"", "FLOPs per byte", "tokens per rank"});
    const auto row = [&](const std::string& name, double operations, double bytes, int of,
                         double of_parameter) {
        const double needed = simulator::operations_to_hide_byte(operations, bytes, of);
        table.row({name, format_fixed(needed, 0),
                   format_fixed(needed / simulator::operations_per_byte(1, of_parameter), 0)});
    };
    row("this machine, this link", operations_per_s, bytes_per_s, ranks, 4);
    row("this machine, 1 Gbit/s", operations_per_s, 125e6, ranks, 4);
    row("GPU, in a node of 8", gpu_operations_per_s, inside_bytes_per_s, node_ranks, 2);
    // All ranks of a node need the same bytes, which come in once, through all of its ports.
    row("GPU, 4,096 ranks", gpu_operations_per_s, node_ranks * port_bytes_per_s, 4096, 2);
    table.note(
        "A byte of parameters is gathered while a rank computes with it: 2 operations for each "
        "token, by 4 bytes of a parameter here and 2 on the GPU. (Tokens, or samples here.) Not "
        "counted: latencies.");
    std::cout << table;
}

}  // namespace ddp
