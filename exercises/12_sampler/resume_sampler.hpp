#pragma once
// Exercise resume_sampler: an epoch is interrupted, and goes on with a different number of ranks.
//
//     order    7  2  9  4  0  6  1  8 | 3  5 11 10
//     before   0  1  2  3  0  1  2  3 |                four ranks
//     after                           | 0  1  2  -     three ranks, and a remainder of one card
//
// The order is that of the chapter's DistributedSampler with shuffle and drop_last.
// You may call: random_permutation(samples, seed).
// The check also tries: an epoch that ends, more ranks than samples, several interruptions.
#include <cstdint>
#include <vector>

#include "12_sampler/sampler.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// The progress that a checkpoint stores. It does not contain the number of ranks.
struct EpochState {
    std::uint64_t seed = 0;  // the sampler's
    int epoch = 0;
    int taken = 0;  // samples of the epoch's order that all ranks together have learned from

    bool operator==(const EpochState&) const = default;
};

// Task state. Returns the state `steps` steps after `begin`. In a step each of `world_size` ranks
// takes a batch of `batch` samples; its last batch may be smaller. When no rank has a sample left,
// the state is the beginning of the next epoch, also after 0 steps; a remainder is left out.
EpochState state_after(const EpochState& begin, int samples, int world_size, int batch, int steps);

// Task rest. Returns the samples that rank `rank` of `world_size` has yet to learn from in this
// epoch, in their order. All ranks get the same number, and a remainder is left out. With the same
// number of ranks as before, these are the samples that would have come without a break.
std::vector<int> rest_of_epoch(const EpochState& state, int samples, int rank, int world_size);

}  // namespace ddp
