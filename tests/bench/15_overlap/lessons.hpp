#pragma once
// Two mistakes that are made on purpose: no_sync around too little, and gradients that are sent in
// the order in which they become ready on each rank.
#include <cstdint>
#include <vector>

#include "05_ranks/world.hpp"
#include "common/data/images.hpp"

namespace ddp {

// ---- Large batches as groups of micro-batches (accumulation.cpp)

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

// ---- Two branches, which odd ranks compute in the opposite order (out_of_order.cpp)

enum class SendingOrder {
    ready,          // each gradient at once; calls carry no names
    ready_by_name,  // each gradient at once; calls carry the gradient's name
    agreed,         // the order of DistributedDataParallel's buckets
};

// Makes one step of a network with two branches of equal size; odd ranks compute the second branch
// first, so that its gradients are ready later. Returns the relative error of a's gradient against
// the mean over the ranks. All ranks call it together. With ready_by_name it throws RunFailed, or
// std::runtime_error on the rank that notices the difference.
double error_of_step(Rank& rank, SendingOrder order);

// Shows the three orders, one after the other; nothing with one rank. Prints on rank 0.
void show_sending_orders(World& world);

}  // namespace ddp
