// The exercise resume_sampler: an epoch goes on with another number of ranks. Read
// exercises/12_sampler/README.md first.
#include "exercises/12_sampler/resume_sampler.hpp"

#include <algorithm>

namespace ddp {

EpochState state_after(const EpochState& begin, int samples, int world_size, int batch, int steps) {
    // stub: state
    //: How many samples does one rank have left? How many of these does it take?
    const int left = (samples - begin.taken) / world_size;  // of each rank
    const int done = std::min(left, steps * batch);
    if (done == left)
        return {begin.seed, begin.epoch + 1, 0};
    return {begin.seed, begin.epoch, begin.taken + done * world_size};
    // end stub
}

std::vector<int> rest_of_epoch(const EpochState& state, int samples, int rank, int world_size) {
    // stub: rest
    //: random_permutation() returns the order that all ranks share.
    const std::vector<int> order =
        random_permutation(samples, state.seed + static_cast<std::uint64_t>(state.epoch));
    const int each = (samples - state.taken) / world_size;
    std::vector<int> own;
    for (int i = 0; i < each; i++)
        own.push_back(order[static_cast<std::size_t>(state.taken + rank + i * world_size)]);
    return own;
    // end stub
}

}  // namespace ddp
