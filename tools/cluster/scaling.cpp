#include "tools/cluster/scaling.hpp"

#include <algorithm>
#include <cmath>

#include "10_nodes/placement.hpp"
#include "21_cluster/simulated_all_reduce.hpp"
#include "tools/cluster/group_training.hpp"

namespace ddp {
namespace {

constexpr int sleeping_buckets = 8;

// Returns the first `ranks` ranks of the job, node after node.
Group first_ranks(const Job& job, int ranks) {
    std::vector<int> members = placement_of(Group::all(job), job, 0, std::nullopt).by_node;
    members.resize(static_cast<std::size_t>(ranks));
    return Group(members);
}

int nodes_of_first(const Job& job, int ranks) {
    const Group group = first_ranks(job, ranks);
    return static_cast<int>(placement_of(group, job, group.rank(0), std::nullopt).sizes.size());
}

int batch_on(int ranks, bool is_strong) {
    return is_strong ? std::max(1, strong_batch / ranks) : weak_batch;
}

// A step of one rank alone.
struct AloneStep {
    simulator::Step parts;
    double seconds = 0;
};

AloneStep measure_alone(Rank& rank, const ScalingOptions& options) {
    if (options.sleep_s > 0)
        return {sleeping_step(options.sleep_s), options.sleep_s};
    NetworkTraining alone(rank, first_ranks(rank.job(), 1), options.order,
                          batch_on(1, options.is_strong));
    const double seconds = median_of_steps(alone, options.rounds);
    // The last step says what a step is made of, and the median how long it takes.
    const simulator::Step parts = alone.parts();
    return {shared_step(parts, seconds / parts.compute_s()), seconds};
}

double measure_step(Rank& rank, const ScalingOptions& options, int ranks) {
    const Group group = first_ranks(rank.job(), ranks);
    if (options.sleep_s > 0) {
        const simulator::Step alone = sleeping_step(options.sleep_s);
        SleepingTraining training(rank, group, options.order,
                                  shared_step(alone, options.share_of(ranks)));
        return median_of_steps(training, options.rounds);
    }
    NetworkTraining training(rank, group, options.order, batch_on(ranks, options.is_strong));
    return median_of_steps(training, options.rounds);
}

// Returns a straight line through the times that were measured.
simulator::Link straight(const LinkTimes& link) {
    if (!link.is_there())
        return {};  // no message takes it
    const CostModel cost = link.cost();
    return simulator::straight_link(cost.alpha_s, 1 / cost.beta_s_per_byte);
}

ScalingPoint point_of(const ScalingOptions& options, const Job& job, int ranks, double measured_s,
                      const AloneStep& alone, const ClusterLinks& links) {
    const double share = options.share_of(ranks);
    return {
        ranks, nodes_of_first(job, ranks), measured_s,
        predicted_step_s(shared_step(alone.parts, share), job, ranks, links, options.order.levels),
        alone.seconds * share};
}

}  // namespace

simulator::Step sleeping_step(double sleep_s) {
    const simulator::Bucket bucket{sleep_s * 3 / 4 / sleeping_buckets,
                                   static_cast<double>(sleeping_bucket_bytes)};
    return {.forward_s = sleep_s / 4,
            .buckets = std::vector<simulator::Bucket>(sleeping_buckets, bucket)};
}

simulator::Step shared_step(simulator::Step step, double share) {
    step.forward_s *= share;
    for (simulator::Bucket& bucket : step.buckets)
        bucket.backward_s *= share;
    return step;
}

double predicted_step_s(const simulator::Step& step, const Job& job, int ranks,
                        const ClusterLinks& links, int levels) {
    if (ranks == 1)
        return step.compute_s();
    const Group group = first_ranks(job, ranks);
    const Placement placement = placement_of(group, job, group.rank(0), std::nullopt);
    if (!placement.is_even())
        return NAN;
    const simulator::Cluster cluster{static_cast<int>(placement.sizes.size()), placement.sizes[0],
                                     straight(links.inside), straight(links.between)};
    const auto algorithm = uses_two_levels(placement, levels) ? simulator::Algorithm::two_level
                                                              : simulator::Algorithm::flat;
    return simulator::step_s(
        step, [&](double bytes) { return simulator::all_reduce_s(algorithm, cluster, bytes); },
        true);
}

std::vector<int> usual_counts(int world_size) {
    std::vector<int> counts;
    for (int ranks = 1; ranks < world_size; ranks *= 2)
        counts.push_back(ranks);
    counts.push_back(world_size);
    return counts;
}

std::vector<ScalingPoint> measure_scaling(World& world, const ScalingOptions& options,
                                          const ClusterLinks& links) {
    AloneStep alone;
    world.run([&](Rank& rank) {
        rank.select_device();
        const AloneStep measured = measure_alone(rank, options);
        if (rank.rank() == 0)
            alone = measured;
    });
    std::vector<ScalingPoint> points;
    for (const int ranks : options.counts)
        // A run of its own: what it takes of a device's memory is free again when it ends.
        world.run([&](Rank& rank) {
            rank.select_device();
            // One rank was measured already.
            const double seconds = ranks == 1 && options.sleep_s == 0
                                       ? alone.seconds
                                       : measure_step(rank, options, ranks);
            if (rank.rank() == 0)
                points.push_back(point_of(options, rank.job(), ranks, seconds, alone, links));
        });
    return points;
}

}  // namespace ddp
