#pragma once
// Scaling: the same step of DistributedDataParallel on 1, 2, 4, ... ranks of a job,
// beside what the simulator says for the links that were measured in the same run.
//
//     weak      every rank computes as much as one rank alone      ideal: the step takes as long
//     strong    the ranks share the work of one rank               ideal: 1 / N of the time
//
// Two kinds of compute: this book's network, or a rank that sleeps. On nodes that share the cores
// of one machine only sleeping ranks compute side by side.
#include <vector>

#include "05_ranks/world.hpp"
#include "10_nodes/communicator/node_order.hpp"
#include "21_cluster/simulated_training.hpp"
#include "tools/cluster/links.hpp"

namespace ddp {

// The samples of the network: of each rank, or of all together.
inline constexpr int weak_batch = 64, strong_batch = 256;

struct ScalingOptions {
    bool is_strong = false;
    double sleep_s = 0;       // of one rank alone, in a step; 0: the network computes
    std::vector<int> counts;  // of ranks
    int rounds = 5;
    AllReduceOrder order;  // of sums between nodes

    // Returns which share of the compute of one rank alone each of `ranks` ranks has.
    double share_of(int ranks) const { return is_strong ? 1.0 / ranks : 1; }
};

// A step on so many ranks: the first ones of the job, node after node.
struct ScalingPoint {
    int ranks = 1, nodes = 1;
    double measured_s = 0;   // the median of the rounds
    double predicted_s = 0;  // NaN where the nodes have different numbers of these ranks
    double ideal_s = 0;

    double efficiency() const { return ideal_s / measured_s; }
};

// Returns the step that a sleeping rank makes alone: a quarter of `sleep_s` is forward, and then
// backward has eight buckets of 512 KiB.
simulator::Step sleeping_step(double sleep_s);

// Returns `step` with its compute multiplied by `share`; the optimizer's is not shared.
simulator::Step shared_step(simulator::Step step, double share);

// Returns the step of the first `ranks` ranks of `job` by the simulator, if the links are straight
// lines through what was measured; NaN where their nodes have different numbers of them.
double predicted_step_s(const simulator::Step& step, const Job& job, int ranks,
                        const ClusterLinks& links, int levels);

// Returns 1, 2, 4, ... and at last all ranks of the job.
std::vector<int> usual_counts(int world_size);

// Measures all points, in a run for each; `links` are those that rank 0 knows. Every process calls
// it, and that of rank 0 gets the points.
std::vector<ScalingPoint> measure_scaling(World& world, const ScalingOptions& options,
                                          const ClusterLinks& links);

}  // namespace ddp
