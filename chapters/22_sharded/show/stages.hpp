#pragma once
// One training at each stage: what it ends in, and what a rank keeps and receives for it.
#include <string>
#include <vector>

#include "05_ranks/rank.hpp"
#include "22_sharded/sharded.hpp"
#include "common/data/fashion_mnist.hpp"

namespace ddp {

// The widths of the perceptron: no number of ranks divides a layer.
inline const std::vector<int> stage_widths = {784, 383, 381, 379, 377, 375, 373, 371, 10};

struct StageResult {
    std::string hash;  // of all parameters, the same on all ranks
    std::size_t parameters = 0, gradients = 0, moments = 0;  // bytes on this rank
    std::size_t received_per_step = 0;                       // bytes
    double seconds_per_step = 0;
};

struct StagePlan {
    int stage = 0;  // 0: DistributedDataParallel
    int steps = 20, batch = 32;
    std::string optimizer = "adam";
    std::uint64_t seed = 1;
    // Between nodes: one ring has the order of a reduce-scatter over all ranks.
    AllReduceOrder order{.levels = 1};
};

// Trains a perceptron with dropped remainders on this rank's pictures. All ranks call it together.
StageResult train_at_stage(Rank& rank, const LabelledImages& images, const StagePlan& plan);

// Does the same at stage 3 within each node, replicated between the nodes of plan.order: all of
// them start with rank 0's model, and end with the same.
StageResult train_hybrid(Rank& rank, const LabelledImages& images, const StagePlan& plan);

// Returns the hash of all parameters. Throws std::runtime_error if ranks differ. All ranks call it.
std::string hash_of_sharded(Rank& rank, Device& device, ShardedDataParallel& sharded);

std::unique_ptr<Optimizer> make_stage_optimizer(const std::string& name,
                                                const Parameters& parameters);

}  // namespace ddp
