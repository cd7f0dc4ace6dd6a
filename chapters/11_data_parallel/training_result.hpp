#pragma once
// A short training run from beginning to end, to be compared with others.
#include <cstdint>
#include <functional>
#include <vector>

#include "03_network/layer.hpp"
#include "03_network/loader.hpp"
#include "05_ranks/rank.hpp"

namespace ddp {

struct TrainingResult {
    std::vector<double> losses;  // one for each step, on the rank's own samples
    std::uint64_t hash = 0;      // of the parameters at the end
    double step_s = 0;           // mean seconds of a step
};

// Trains for one pass over the samples that loader.start_epoch was given, by SGD with momentum.
// Calls `average_gradients` after each backward: it replaces the gradients by their means over all
// ranks, or does nothing. Waits for the device.
TrainingResult train(Device& device, Module& model, Loader& loader,
                     const std::function<void()>& average_gradients, double learning_rate = 0.05);

// Returns the element-wise mean of all ranks' vectors, the same bits on every rank. All ranks call
// it together. Throws std::runtime_error if the vectors have different lengths.
std::vector<double> mean_of_ranks(Rank& rank, const std::vector<double>& mine);

// Returns the largest difference between two runs' losses in their first `steps` steps. `b` has at
// least as many elements as `a`.
double largest_difference(const std::vector<double>& a, const std::vector<double>& b,
                          std::size_t steps);

}  // namespace ddp
