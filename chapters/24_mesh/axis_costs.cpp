#include "24_mesh/axis_costs.hpp"

#include <algorithm>
#include <stdexcept>

#include "21_cluster/simulated_all_reduce.hpp"

namespace ddp {
namespace {

using simulator::Algorithm;

constexpr int gpus_per_node = 8;
constexpr double flops = 400e12, inside = 370e9, port = 48e9;
constexpr double inside_latency_s = 3.4e-6, port_latency_s = 14e-6;

// Ranks of one axis: neighbours in the numbering are `step` apart.
simulator::Cluster cluster_of(int ranks, int step) {
    // So many are on one node, and each such group has as many of its ports.
    const int together = std::clamp(gpus_per_node / step, 1, ranks);
    return {.nodes = ranks / together,
            .ranks_per_node = together,
            .inside = simulator::straight_link(inside_latency_s, inside),
            .between = simulator::straight_link(port_latency_s, port),
            .ports = together};
}

// NCCL takes the ring or the double tree, whichever it expects to be faster.
double all_reduce_s(int ranks, int step, double bytes) {
    if (ranks == 1)
        return 0;
    const simulator::Cluster cluster = cluster_of(ranks, step);
    return std::min(simulator::all_reduce_s(Algorithm::flat, cluster, bytes),
                    simulator::all_reduce_s(Algorithm::tree, cluster, bytes));
}

double sent(int ranks, double bytes) {
    return 2.0 * (ranks - 1) / ranks * bytes;
}

bool divides(const LargeModel& model, const MeshShape& shape, int sequences) {
    return model.layers % shape.pp == 0 && sequences % shape.dp == 0;
}

}  // namespace

MeshCost cost_of(const LargeModel& model, const MeshShape& shape, int sequences) {
    if (!divides(model, shape, sequences))
        throw std::invalid_argument("a mesh of " + shape.text() + " divides neither " +
                                    std::to_string(sequences) + " sequences nor " +
                                    std::to_string(model.layers) + " layers, or only one of them");
    const double m = sequences / shape.dp;
    const double layers = model.layers / shape.pp;
    const double activations = 2.0 * model.tokens * model.width;  // between two layers
    const double own_parameters = model.parameters / (shape.pp * shape.tp);
    MeshCost cost;
    cost.compute_s = 6 * own_parameters * model.tokens * m / flops;
    // Four all-reduces a layer, each waited for.
    cost.tp.messages = shape.tp == 1 ? 0 : 4 * m * layers;
    cost.tp.bytes = cost.tp.messages * sent(shape.tp, activations);
    cost.tp.seconds = cost.tp.messages * all_reduce_s(shape.tp, 1, activations);
    cost.tp.exposed_s = cost.tp.seconds;
    // Activations forward, gradients back. Under 1F1B a stage waits for a round trip at each
    // micro-batch, at most.
    const bool leaves_node = shape.tp * shape.pp > gpus_per_node;
    const double message_s =
        leaves_node ? port_latency_s + activations / port : inside_latency_s + activations / inside;
    cost.pp.messages = shape.pp == 1 ? 0 : 2 * m;
    cost.pp.bytes = cost.pp.messages * activations;
    cost.pp.seconds = cost.pp.messages * message_s;
    cost.pp.exposed_s = shape.pp == 1 ? 0 : 2 * (m + shape.pp - 1) * message_s;
    cost.idle_s = (cost.compute_s + cost.tp.exposed_s) * (shape.pp - 1) / m;
    // Gradients, once a step, beside the last micro-batch's backward: two thirds of its computing.
    cost.dp.messages = shape.dp == 1 ? 0 : 1;
    cost.dp.bytes = sent(shape.dp, 2 * own_parameters);
    cost.dp.seconds = all_reduce_s(shape.dp, shape.tp * shape.pp, 2 * own_parameters);
    cost.dp.exposed_s = std::max(0.0, cost.dp.seconds - cost.compute_s / m * 2 / 3);
    cost.state = (4 + 12.0 / shape.dp) * own_parameters;
    // Korthikanti and others, "Reducing Activation Recomputation in Large Transformer Models"
    // (2022), without the scores of attention, which a fused kernel does not keep: a layer keeps
    // s h (10 + 24 / t) bytes of a sequence. 1F1B keeps p sequences.
    cost.activations = std::min(m, static_cast<double>(shape.pp)) * layers * model.tokens *
                       model.width * (10 + 24.0 / shape.tp);
    return cost;
}

MeshShape best_shape(const LargeModel& model, int ranks, int sequences, double memory,
                     std::optional<int> tp) {
    std::optional<MeshShape> best;
    double best_s = 0;
    for (int t = 1; t <= 2 * gpus_per_node; t *= 2)
        for (int p = 1; p <= model.layers && t * p <= ranks; p++) {
            const MeshShape shape{ranks / (t * p), p, t};
            if (shape.ranks() != ranks || !divides(model, shape, sequences) || t != tp.value_or(t))
                continue;
            const MeshCost cost = cost_of(model, shape, sequences);
            if (cost.memory() <= memory && (!best || cost.step_s() < best_s)) {
                best = shape;
                best_s = cost.step_s();
            }
        }
    if (!best)
        throw std::invalid_argument("no mesh of " + std::to_string(ranks) + " ranks has room for " +
                                    model.name + " parameters");
    return *best;
}

}  // namespace ddp
