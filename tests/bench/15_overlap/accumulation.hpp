#pragma once
// Large batches as groups of micro-batches, on several ranks: gradients add up in no_sync and are
// sent once a group.
#include <cstdint>
#include <vector>

#include "05_ranks/rank.hpp"
#include "common/data/images.hpp"

namespace ddp {

// Which calls lie within no_sync, for every micro-batch of a group but the last.
enum class NoSyncAround { forward_and_backward, backward, nothing };

struct Accumulation {
    int micro_batches = 250;  // of each rank; the last group need not be full
    int group = 100;          // micro-batches a step
    int batch = 8;            // samples a micro-batch
};

struct Accumulated {
    int steps = 0;
    int all_reduces = 0;
    double seconds = 0;
    std::vector<float> parameters;
};

// Trains a small network on `images`, one step a group. A group's gradient is the mean over its
// micro-batches, however many it has. All ranks call it together.
Accumulated learn_in_groups(Rank& rank, const LabelledImages& images, NoSyncAround around,
                            const Accumulation& accumulation, std::uint64_t seed);

}  // namespace ddp
