#pragma once
// Trains in several ways: each rank alone, with averaged gradients, and by one rank that
// sees all samples.
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "11_data_parallel/training_result.hpp"
#include "common/data/images.hpp"

namespace ddp {

struct ComparisonOptions {
    int batch = 32;                       // samples per step and rank
    std::string communicator = "native";  // for the gradients: native, mpi or nccl
    std::uint64_t seed = 1;
};

// Two parameters of a replica: the biases by which the last layer's first two classes begin.
using TwoBiases = std::array<float, 2>;

// The distance between the replicas, as Drift measures it, before some of the steps; and where this
// rank's replica was then.
struct DriftCurve {
    std::vector<int> steps;
    std::vector<double> distances;
    std::vector<TwoBiases> path;
};

struct Comparison {
    TrainingResult alone;         // gradients are not sent
    TrainingResult averaged;      // gradients are averaged
    TrainingResult whole;         // each rank trains on the samples of all ranks
    TrainingResult summed;        // gradients are summed
    TrainingResult summed_short;  // gradients are summed, and the learning rate is divided by N
    DriftCurve drift_alone, drift_averaged;
};

// Trains the MLP in all five ways on the samples `order`, of which each rank has a shard. All ranks
// call it together.
Comparison compare_trainings(Rank& rank, const LabelledImages& images,
                             const std::vector<int>& order, const ComparisonOptions& options);

// Prints the comparison on rank 0, and writes a row for each step to the file `csv` (empty: none).
// The replicas' paths go into a second file beside it.
// All ranks call it together.
void show_comparison(Rank& rank, const Comparison& comparison, int batch,
                     const std::filesystem::path& csv);

}  // namespace ddp
