#pragma once
// The time of a step at each stage, over a link and without one, beside what the simulator makes of
// it; and the simulator's step on a cluster that is not there.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "05_ranks/rank.hpp"
#include "21_cluster/simulated_sharded.hpp"
#include "common/report/options.hpp"

namespace ddp {

// A way to train one model.
struct Sharding {
    std::string name;
    int stage = 0;  // 0: DistributedDataParallel
    bool prefetches = true;
};
// DDP, stages 1 to 3, and stage 3 without prefetch.
const std::vector<Sharding>& shardings();

inline constexpr int timed_width = 512;  // of every layer
inline constexpr std::size_t timed_layers = 8;

struct StageTimes {
    std::vector<std::vector<double>> seconds;  // of a step: by sharding, by round
    double forward_s = 0, backward_s = 0;      // a DDP step's parts, in the device's proportion
    double gradient_bytes = 0;                 // of all layers
};

// Measures steps of a perceptron of eight equal layers with each sharding, in turn. All ranks call
// it together, and all get the same.
StageTimes time_stages(Rank& rank, int batch, int rounds, std::uint64_t seed);

// Measures steps of the same perceptron at stages 1 and 3, and in turn with them those of another
// program: `other` makes so many steps, on rank 0, and returns their seconds. All ranks call it
// together. Returns the seconds of a step: by program, by round.
std::vector<std::vector<double>> time_beside(Rank& rank, int batch, int rounds, std::uint64_t seed,
                                             const std::function<double(int steps)>& other);

// Returns what the simulator makes over a link of a step that was measured without, of
// shardings()[which].
double predicted_step_s(std::size_t which, const StageTimes& times, int ranks,
                        const LinkSpeed& link);

}  // namespace ddp
