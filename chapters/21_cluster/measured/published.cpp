#include "21_cluster/failures.hpp"
#include "21_cluster/measured/comparison.hpp"
#include "21_cluster/simulated_all_reduce.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

using namespace simulator;

constexpr double mib = 1 << 20, gib = 1 << 30;

// ---- All-reduces, as bus bandwidth: 2 (N - 1) / N bytes / seconds

// NCCL takes the ring or the double tree, whichever it expects to be faster.
double nccl_s(const Cluster& cluster, double bytes) {
    return std::min(all_reduce_s(Algorithm::flat, cluster, bytes),
                    all_reduce_s(Algorithm::tree, cluster, bytes));
}

Comparison bus_bandwidth(const std::string& what, const Cluster& cluster, double bytes,
                         double published, double seconds, const std::string& source) {
    const int ranks = cluster.ranks();
    return {published_all_reduce,
            what + ", " + format_bytes(bytes),
            published,
            2.0 * (ranks - 1) / ranks * bytes / seconds / 1e9,
            "GB/s",
            source};
}

// A port of 400 Gbit/s carries 48 GB/s (a maintainer in nccl-tests, issue 290); the latencies are
// those of NCCL's own model (src/graph/tuning.cc, protocol Simple): 14 us over a network, 3.4 us
// over NVLink.
Cluster gpu_nodes(int nodes, int ranks_per_node, int ports, double port_gb_s, double inside_gb_s) {
    return {.nodes = nodes,
            .ranks_per_node = ranks_per_node,
            .inside = straight_link(3.4e-6, inside_gb_s * 1e9),
            .between = straight_link(14e-6, port_gb_s * 1e9),
            .ports = ports};
}

void add_all_reduces(std::vector<Comparison>& result) {
    const Cluster b200 = gpu_nodes(4, 8, 8, 48, 682);
    for (const auto& [bytes, gb_s] :
         std::initializer_list<std::pair<double, double>>{{mib, 12.47},
                                                          {16 * mib, 71.80},
                                                          {32 * mib, 142.90},
                                                          {128 * mib, 260.50},
                                                          {512 * mib, 309.91},
                                                          {gib, 365.99},
                                                          {16 * gib, 376.71}})
        result.push_back(bus_bandwidth("4 x 8 B200", b200, bytes, gb_s, nccl_s(b200, bytes), "a"));
    const Cluster h200 = gpu_nodes(248, 8, 8, 48, 370);
    result.push_back(
        bus_bandwidth("248 x 8 H200", h200, 512 * mib, 350, nccl_s(h200, 512 * mib), "b"));
    const Cluster a100 = gpu_nodes(3, 8, 4, 25, 235);
    result.push_back(
        bus_bandwidth("3 x 8 A100, 4 ports", a100, 128 * mib, 96, nccl_s(a100, 128 * mib), "c"));
    const Cluster h100 = gpu_nodes(2, 1, 1, 48, 370);
    for (const auto& [bytes, gb_s] : std::initializer_list<std::pair<double, double>>{
             {2 * mib, 18.53}, {8 * mib, 36.24}, {32 * mib, 41.31}})
        result.push_back(bus_bandwidth("2 x 1 H100, tree", h100, bytes, gb_s,
                                       all_reduce_s(Algorithm::tree, h100, bytes), "d"));
}

// ---- Efficiencies of trainings

// Returns how much a training keeps of its speed: the step of `base` ranks / the step of all.
double kept(const Step& step, const Seconds& base, const Seconds& all, bool overlap) {
    return step_s(step, base, overlap) / step_s(step, all, overlap);
}

Seconds nccl_on(const Cluster& cluster) {
    return [=](double bytes) { return nccl_s(cluster, bytes); };
}

double nothing(double) {
    return 0;
}

// 128 nodes of 4 P100, one port of 25 Gbit/s with 92 % of it for data; batch 64. The images a
// second of one GPU are from memory, backward is two thirds of a step, and a bucket is Horovod's
// buffer of 64 MB. Of VGG-16 the last layers, nine tenths of the bytes, are ready at once.
void add_horovod(std::vector<Comparison>& result) {
    const Cluster cluster = gpu_nodes(128, 4, 1, 25.0 / 8 * 0.92, 10);
    const auto add = [&](const char* model, const Step& step, double published) {
        result.push_back({published_training, std::string("Horovod, 128 x 4 P100, ") + model,
                          published, kept(step, nothing, nccl_on(cluster), true), "", "e"});
    };
    const double resnet_s = 64 / 119.0, inception_s = 64 / 142.0, vgg_s = 64 / 147.0;
    add("ResNet-101", equal_buckets(resnet_s / 3, resnet_s * 2 / 3, 3, 4 * 44.6e6), 0.90);
    add("Inception V3", equal_buckets(inception_s / 3, inception_s * 2 / 3, 2, 4 * 23.9e6), 0.90);
    const double vgg_bytes = 4 * 138.4e6, backward_s = vgg_s * 2 / 3;
    add("VGG-16",
        {vgg_s / 3,
         {{0.05 * backward_s, 0.89 * vgg_bytes}, {0.95 * backward_s, 0.11 * vgg_bytes}},
         0},
        0.68);
}

// ResNet-50 in float32 on nodes of 8 V100, one port of 100 Gbit/s; batch 128, 362.44 images a
// second on one GPU. Both published numbers are relative to that GPU.
void add_resnet_50(std::vector<Comparison>& result) {
    const double step_of_one_s = 128 / 362.44;
    const Step step = equal_buckets(step_of_one_s / 3, step_of_one_s * 2 / 3, 2, 4 * 25.6e6);
    for (const auto& [nodes, published] : std::initializer_list<std::pair<int, double>>{
             {1, 7.51 / 8}, {2, 14.07 / 16}, {4, 26.25 / 32}})
        result.push_back(
            {published_training, "ResNet-50, " + std::to_string(nodes) + " x 8 V100", published,
             kept(step, nothing, nccl_on(gpu_nodes(nodes, 8, 1, 12, 120)), true), "", "f"});
    // 32 nodes of 8 P100, 50 Gbit/s, batch 32: 256 GPUs made 14,075 steps in an hour.
    const Cluster facebook = gpu_nodes(32, 8, 1, 50.0 / 8, 20);
    const Step small = equal_buckets(0.23 / 3, 0.23 * 2 / 3, 4, 4 * 25.6e6);
    const Seconds two_levels = [&](double bytes) {
        return all_reduce_s(Algorithm::two_level, facebook, bytes);
    };
    result.push_back({published_training, "ResNet-50, 32 x 8 P100 against 1 x 8", 0.90,
                      kept(small, nccl_on(gpu_nodes(1, 8, 1, 6.25, 20)), two_levels, true), "",
                      "g"});
}

// BERT on DGX-2H: 336 million parameters in float16, reduced once after all micro-batches of a
// step, not hidden; LAMB takes 20 ms. Ports and the speed inside are from memory.
void add_bert(std::vector<Comparison>& result) {
    struct Run {
        int nodes, micro_batches;
        double speed_up;
    };
    const auto add = [&](const char* name, double micro_batch_s, int micro_batches_of_one_node,
                         std::initializer_list<Run> runs) {
        const auto sample_s = [&](int nodes, int micro_batches) {
            const double reduce_s = nccl_s(gpu_nodes(nodes, 16, 8, 12, 120), 2 * 336e6);
            return micro_batch_s + (reduce_s + 0.02) / micro_batches;
        };
        for (const Run& run : runs)
            result.push_back(
                {published_training,
                 std::string("BERT, ") + name + ", " + std::to_string(run.nodes) + " x 16 V100",
                 run.speed_up / run.nodes,
                 sample_s(1, micro_batches_of_one_node) / sample_s(run.nodes, run.micro_batches),
                 "", "h"});
    };
    add("128 tokens", 64 * 16 / 3379.2, 64, {{4, 16, 3.76}, {16, 4, 15.37}, {64, 1, 55.66}});
    add("512 tokens", 8 * 16 / 625.66, 256, {{4, 64, 3.81}, {16, 16, 15.87}, {64, 4, 59.9}});
}

// ---- Failures

// 16,384 H100 of a training of 54 days: 419 unexpected interruptions, and "higher than 90 %" of the
// time counted. What a checkpoint and a restart cost is assumed.
void add_failures(std::vector<Comparison>& result) {
    const Failures failures{54 * 86'400.0 / 419, 60, 600};
    result.push_back({published_failures, "Llama 3, 16,384 H100, time that counts", 0.90,
                      useful_share(failures, best_interval_s(failures)), "", "i"});
}

}  // namespace

std::vector<Comparison> comparisons_with_published() {
    std::vector<Comparison> result;
    add_all_reduces(result);
    add_horovod(result);
    add_resnet_50(result);
    add_bert(result);
    add_failures(result);
    return result;
}

}  // namespace ddp
