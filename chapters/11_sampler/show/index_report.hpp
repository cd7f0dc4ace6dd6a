#pragma once
// Which rank gets which samples, as tables.
#include <cstdint>
#include <string>
#include <vector>

#include "05_ranks/rank.hpp"

namespace ddp {

// Returns the numbers with spaces between them: "3 1 2".
std::string joined(const std::vector<int>& numbers);

// Divides 24 integers among the ranks. Every rank adds up its own and sleeps for a random time at
// each; rank 0 prints the sums and times. All ranks call it together.
void show_integers(Rank& rank, std::uint64_t seed);

// Prints the indices of each rank when the number of samples is not a multiple of `ranks`: padded,
// with drop_last, and unpadded.
void show_remainders(int ranks);

// Prints rank 0's first samples in three epochs, with set_epoch and without.
void show_epochs(int samples, int ranks, std::uint64_t seed);

}  // namespace ddp
