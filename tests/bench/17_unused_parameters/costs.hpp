#pragma once
// The cost of the cures where there is nothing to cure: every rank uses everything, in every step.
#include <string>
#include <vector>

#include "17_unused_parameters/training/training_run.hpp"

namespace ddp {

struct StepCost {
    std::string training;  // "plain DDP", "join", ...
    double seconds = 0;    // median time of a step
    double ratio = 1;      // median ratio to the step of plain DDP in the same round
};

// Measures five trainings, one step of each in turn, `rounds` times. All ranks call it together.
std::vector<StepCost> measure_steps(Rank& rank, std::uint64_t seed, int rounds);

// Returns the host's time, in seconds, for one search through the graph of a forward.
double measure_search(Rank& rank, std::uint64_t seed);

}  // namespace ddp
