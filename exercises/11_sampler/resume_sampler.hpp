#pragma once
// The contract of the exercise resume_sampler: an epoch that is left in the middle, and goes on
// with another number of ranks. As long as the number of ranks stays the same, they deal the order
// of the epoch out as the chapter's DistributedSampler does with shuffle and drop_last, and each
// goes through its part in batches; its last batch may be smaller.
#include <cstdint>
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// What a checkpoint keeps. There is no number of ranks in it.
struct EpochState {
    std::uint64_t seed = 0;  // the sampler's
    int epoch = 0;
    int taken = 0;  // so many of the epoch's order have been learned from, by all ranks together

    bool operator==(const EpochState&) const = default;
};

// Task state. `begin`, and `steps` steps later: each of `world_size` ranks takes a batch of `batch`
// samples in a step. `steps` are not more than the epoch still has. When no rank has anything left,
// the state is the beginning of the next epoch: what does not divide was left out.
EpochState state_after(const EpochState& begin, int samples, int world_size, int batch, int steps);

// Task rest. What rank `rank` of `world_size` is still to learn from in this epoch, in its order;
// none, if there is less than one for each rank. All ranks get as many; what does not divide is
// left out. With the number of ranks of before it is exactly what would have come.
std::vector<int> rest_of_epoch(const EpochState& state, int samples, int rank, int world_size);

}  // namespace ddp
