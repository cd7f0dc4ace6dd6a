#pragma once
// A short training from beginning to end, to be compared with others.
#include <cstdint>
#include <functional>
#include <vector>

#include "03_network/layer.hpp"
#include "03_network/loader.hpp"
#include "05_ranks/rank.hpp"

namespace ddp {

// What is left of a training.
struct TrainingResult {
    std::vector<double> losses;  // of each step, on the rank's own samples
    std::uint64_t hash = 0;      // of the parameters at the end
    double step_s = 0;
};

// One pass over what loader.start_epoch was given, by SGD with momentum. `average_gradients` is
// called after each backward: it makes them the mean of all ranks', or does nothing.
TrainingResult train(Device& device, Module& model, Loader& loader,
                     const std::function<void()>& average_gradients, double learning_rate = 0.05);

// Number by number. All ranks call it together, each with as many. Throws std::runtime_error if
// another rank has not as many as this one.
std::vector<double> mean_of_ranks(Rank& rank, const std::vector<double>& mine);

// Between two courses' losses, in the first `steps` at most.
double largest_difference(const std::vector<double>& a, const std::vector<double>& b,
                          std::size_t steps);

}  // namespace ddp
