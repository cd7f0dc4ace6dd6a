#pragma once
// Which rank gets which samples, as tables.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "05_ranks/rank.hpp"

namespace ddp {

// Returns the numbers with spaces between them: "3 1 2".
std::string joined(const std::vector<int>& numbers);

// Deals the integers 0 to 23 out. Every rank adds up its own, at its own pace: it sleeps for a
// random time at each. Prints who had which, and their averages. All ranks call it together.
void show_integers(Rank& rank, std::uint64_t seed);

// Prints the indices of each rank when the number of samples is not a multiple of `ranks`: padded,
// with drop_last, and unpadded.
void show_remainders(int ranks);

// Prints the batches of eight updates, counted in all four ways.
void show_updates(int ranks, std::uint64_t seed);

// Writes how samples are dealt out, as rows to be drawn, to the file `csv` (empty: none): 24
// integers in two epochs, and a number that does not divide, padded and with drop_last.
void write_deals(int ranks, std::uint64_t seed, const std::filesystem::path& csv);

}  // namespace ddp
