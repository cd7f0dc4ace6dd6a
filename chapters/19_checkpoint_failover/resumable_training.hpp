#pragma once
// A training that may be killed at any moment and started again: it continues from its last
// checkpoint.
#include <filesystem>

#include "05_ranks/rank.hpp"
#include "common/data/fashion_mnist.hpp"

namespace ddp {

struct TrainingPlan {
    int epochs = 2;
    int batch = 64;  // pictures per step and rank
    double learning_rate = 0.1;
    std::string optimizer = "sgd";
    std::string communicator = "native";
    std::uint64_t seed = 1;
    std::filesystem::path folder;  // of the checkpoints
    int every = 50;                // steps between two checkpoints
    int keep = 3;                  // how many checkpoints stay
};

// Trains on this rank, to the end of the plan. Sends status lines to the supervisor, if there is
// one; otherwise rank 0 prints. Throws OptionError if the folder's checkpoints are of another
// training, and std::runtime_error if none of them is whole.
void train_resumably(Rank& rank, const FashionMnist& data, const TrainingPlan& plan);

}  // namespace ddp
