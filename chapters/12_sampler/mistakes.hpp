#pragma once
// Mistakes that cause no error message, as the code that makes them, beside the code that is right;
// and what the ranks then learn from.
#include <cstdint>
#include <string>
#include <vector>

#include "12_sampler/sampler.hpp"

namespace ddp {

// A way to divide the samples of an epoch among ranks, correct or not.
enum class Division {
    sampler,       // DistributedSampler: each rank takes its entries of one order
    forgotten,     // no sampler: each rank takes all samples, in one order
    own_shuffles,  // each rank takes its entries of an order that it shuffled with its own seed
};
// Returns the name in the tables.
std::string to_string(Division division);
// Returns the samples of rank `rank` in an epoch.
std::vector<int> divided(Division division, int samples, int rank, int world_size,
                         std::uint64_t seed);

// The samples that all ranks together see in an epoch.
struct Coverage {
    int steps = 0;   // of the last rank
    int seen = 0;    // different samples
    int twice = 0;   // of these, seen more than once
    int missed = 0;  // never seen
};
// Counts how often each sample is seen, with batches of `batch` samples per rank.
Coverage coverage_of(Division division, int samples, int batch, int world_size, std::uint64_t seed);

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

}  // namespace ddp
