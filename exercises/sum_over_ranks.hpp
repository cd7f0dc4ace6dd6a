#pragma once
// Sums over the ranks for the host code of an exercise.
#include <functional>
#include <vector>

namespace ddp {

// Every number becomes its sum over all ranks. All ranks call it together, each with as many
// numbers: an all-reduce.
using SumOverRanks = std::function<void(std::vector<double>& numbers)>;

}  // namespace ddp
