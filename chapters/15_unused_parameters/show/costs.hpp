#pragma once
// What the cures cost where nothing is to be cured: every rank uses everything, in every step.
#include <string>
#include <vector>

#include "15_unused_parameters/show/training_run.hpp"

namespace ddp {

struct StepCost {
    std::string way;
    double seconds = 0;  // of a step, in the middle of all
    double ratio = 1;    // to a step of plain DDP in the same round
};

// The same training in five ways, step by step in turn. All ranks call it together.
std::vector<StepCost> measure_steps(Rank& rank, std::uint64_t seed, int rounds);

// Of one search through the graph of a forward.
double measure_search(Rank& rank, std::uint64_t seed);

}  // namespace ddp
