#pragma once
// A training that is the same in any mesh, and on one rank.
#include <functional>
#include <string>

#include "24_mesh/device_mesh.hpp"
#include "24_mesh/parallel_model.hpp"
#include "24_mesh/pipeline.hpp"

namespace ddp {

struct MeshPlan {
    MeshShape shape;
    Schedule schedule = Schedule::one_f_one_b;
    LanguageModelOptions model;
    int steps = 20;
    int sentences = 32;     // of a step, over all replicas
    int micro_batches = 8;  // of a replica
    std::uint64_t seed = 1;

    int micro_sentences() const { return sentences / (shape.dp * micro_batches); }
};

struct MeshResult {
    std::string hash;                      // of all parameters of the model
    double first_loss = 0, last_loss = 0;  // of the step's batch
    double norm = 0;                       // of all gradients in the last step
    std::size_t parameters = 0;            // bytes of this rank
    std::size_t activations = 0;           // bytes of this rank's tapes, at most
    int max_in_flight = 0;                 // micro-batches
    double seconds_per_step = 0;
    double bytes_leaving_node = 0;  // per step; 0 if all ranks are on one node
};

// Trains on the ranks of a mesh. All ranks call it together, and get the same result but for the
// bytes and micro-batches, which are their own. Throws OptionError for sizes that do not divide.
MeshResult train_on_mesh(Rank& rank, const MeshPlan& plan);

// Trains on one rank that takes the same sums in the same order: the parts of a matrix one after
// the other, and the replicas. Calls `after_step` after each step.
MeshResult train_on_one_rank(
    Device& device, const MeshPlan& plan, const std::function<void()>& after_step = [] {});

// Returns the bytes of the activations that stage `stage` keeps at the same time, for as many
// micro-batches as its schedule has in flight there.
std::size_t predicted_activations(const MeshPlan& plan, int stage);

// Sentences that count: each next token is the one before plus the sentence's step. A model that
// looks at two tokens can continue them.
struct CountingBatch {
    Tokens tokens;  // [sentences, length]
    Labels target;  // [sentences * length]
};
CountingBatch counting_batch(Device& device, const MeshPlan& plan, int step, int replica,
                             int micro_batch);

}  // namespace ddp
