#pragma once
// Which samples fall to which rank, as tables.
#include <cstdint>
#include <string>
#include <vector>

#include "05_ranks/rank.hpp"

namespace ddp {

// "3 1 2".
std::string joined(const std::vector<int>& numbers);

// 24 integers: every rank adds up its own, each of which takes a time of its own. All ranks call
// it together; rank 0 prints.
void show_integers(Rank& rank, std::uint64_t seed);

// What becomes of samples that do not divide by `ranks`.
void show_remainders(int ranks);

// Rank 0's first samples in three epochs, with set_epoch and without.
void show_epochs(int samples, int ranks, std::uint64_t seed);

}  // namespace ddp
