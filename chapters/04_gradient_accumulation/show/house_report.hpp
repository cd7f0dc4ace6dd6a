#pragma once
// The chapter's tables about houses. Each function prints one or more of them.
#include "01_sgd/device.hpp"
#include "common/data/houses.hpp"

namespace ddp {

// Prints two houses, state by state: a step for each, one step for both, and the same without zero.
void show_states(Device& device, const std::vector<House>& two, double learning_rate);

// Prints one step for two houses: as one batch, accumulated as a mean, and accumulated as a sum.
void show_sum_and_mean(Device& device, const std::vector<House>& two, double learning_rate);

// Prints seven houses in groups of three, and in micro-batches of three.
void show_incomplete(Device& device, const std::vector<House>& seven);

}  // namespace ddp
