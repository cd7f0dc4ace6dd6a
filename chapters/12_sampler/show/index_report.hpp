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

// Divides 24 integers among the ranks. Every rank adds up its own and sleeps for a random time at
// each; rank 0 prints the sums and times. All ranks call it together.
void show_integers(Rank& rank, std::uint64_t seed);

// Prints the indices of each rank when the number of samples is not a multiple of `ranks`: padded,
// with drop_last, and unpadded.
void show_remainders(int ranks);

// Prints rank 0's first samples in three epochs, with set_epoch and without.
void show_epochs(int samples, int ranks, std::uint64_t seed);

// Ways of a program that counts updates, and not epochs, to get its batches from a loader.
enum class Counting {
    one_iterator,        // it = iter(loader), and next(it) for each update
    new_iterators,       // next(iter(loader)) for each update
    restarted,           // a new iterator when the last one has run out
    restarted_with_set,  // the same, and set_epoch before each
};
// Returns the batches that rank 0 learns from in `updates` updates: fewer if the loader runs out.
std::vector<std::vector<int>> batches_of(Counting counting, int samples, int ranks, int batch,
                                         int updates, std::uint64_t seed);
// Prints the batches of eight updates, counted in all four ways.
void show_updates(int ranks, std::uint64_t seed);

// Writes how samples are dealt out, as rows to be drawn, to the file `csv` (empty: none): 24
// integers in two epochs, and a number that does not divide, padded and with drop_last.
void write_deals(int ranks, std::uint64_t seed, const std::filesystem::path& csv);

}  // namespace ddp
