#pragma once
// The contract of the exercise resume_sampler: an epoch is interrupted, and goes on with another
// number of ranks. While the number of ranks stays the same, the order of the epoch is dealt out as
// by the chapter's DistributedSampler with shuffle and drop_last. Each rank goes through its
// samples in batches; its last batch may be smaller.
#include <cstdint>
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// The progress that a checkpoint stores. It does not contain the number of ranks.
struct EpochState {
    std::uint64_t seed = 0;  // the sampler's
    int epoch = 0;
    int taken = 0;  // the samples of the epoch's order that all ranks together have learned from

    bool operator==(const EpochState&) const = default;
};

// Task state. Returns the state `steps` steps after `begin`. In a step each of `world_size` ranks
// takes a batch of `batch` samples. The epoch has at least `steps` steps left. When no rank has a
// sample left, the state is the beginning of the next epoch, even if `steps` is 0; a remainder is
// left out.
EpochState state_after(const EpochState& begin, int samples, int world_size, int batch, int steps);

// Task rest. Returns the samples that rank `rank` of `world_size` has yet to learn from in this
// epoch, in their order. All ranks get the same number, and a remainder is left out: so there are
// none if fewer samples are left than there are ranks. With the same number of ranks as before the
// interruption, these are exactly the samples that would have come.
std::vector<int> rest_of_epoch(const EpochState& state, int samples, int rank, int world_size);

}  // namespace ddp
