#pragma once
// Large batches in pieces, on several ranks: gradients add up in no_sync, and are sent once.
#include <cstdint>
#include <vector>

#include "05_ranks/rank.hpp"
#include "common/data/images.hpp"

namespace ddp {

// What lies within no_sync, of every micro-batch of a group but its last.
enum class NoSyncAround { forward_and_backward, backward, nothing };

struct Accumulation {
    int micro_batches = 250;  // of each rank; the last group need not be full
    int group = 100;          // micro-batches of a step
    int batch = 8;            // samples of a micro-batch
};

struct Accumulated {
    int steps = 0;
    int all_reduces = 0;
    double seconds = 0;
    std::vector<float> parameters;
};

// A small network learns from `images`, in groups. A group's gradient is the mean over its
// micro-batches, however many it has. All ranks call it together.
Accumulated learn_in_groups(Rank& rank, const LabelledImages& images, NoSyncAround around,
                            const Accumulation& accumulation, std::uint64_t seed);

// The three ways, beside each other. Prints on rank 0.
void show_accumulation(Rank& rank, const LabelledImages& images, const Accumulation& accumulation,
                       std::uint64_t seed);

}  // namespace ddp
