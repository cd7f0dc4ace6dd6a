#pragma once
// A training that can be ended at any moment, and begun again: it goes on where its last checkpoint
// was.
#include <filesystem>

#include "05_ranks/rank.hpp"
#include "common/data/fashion_mnist.hpp"

namespace ddp {

struct TrainingPlan {
    int epochs = 2;
    int batch = 64;  // pictures a step and rank
    double learning_rate = 0.1;
    std::string optimizer = "sgd";
    std::string communicator = "native";
    std::uint64_t seed = 1;
    std::filesystem::path folder;  // of the checkpoints
    int every = 50;                // steps between two
    int keep = 3;
};

// One rank's part. Tells the supervisor, if there is one, how far it is; otherwise rank 0 prints.
// Throws OptionError if the folder's checkpoints are of another training.
void train_resumably(Rank& rank, const FashionMnist& data, const TrainingPlan& plan);

}  // namespace ddp
