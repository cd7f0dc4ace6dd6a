#pragma once
// A training that may be killed at any moment and started again: it continues from its last
// checkpoint.
#include "05_ranks/rank.hpp"
#include "10_nodes/communicator/node_order.hpp"
#include "19_checkpoint_failover/checkpointed_run.hpp"
#include "common/data/fashion_mnist.hpp"

namespace ddp {

struct TrainingPlan {
    int epochs = 2;
    int batch = 64;  // pictures per step and rank
    double learning_rate = 0.1;
    std::string optimizer = "sgd";
    std::string communicator = "native";
    AllReduceOrder order;  // of sums between nodes
    std::uint64_t seed = 1;
    CheckpointPlan checkpoints{.every = 50, .keep = 3};
};

// Trains on this rank, to the end of the plan; or until it is told to end and has saved, and then
// returns false, on all ranks. Sends status lines to the supervisor, if there is one; otherwise
// rank 0 prints. Throws OptionError if the folder's checkpoints are of another
// training, and std::runtime_error if none of them is whole.
bool train_resumably(Rank& rank, const FashionMnist& data, const TrainingPlan& plan);

}  // namespace ddp
