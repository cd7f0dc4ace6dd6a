#pragma once
// The models that the chapter's program trains: a perceptron on pictures, or a transformer on
// sentences that it is to write backwards.
#include <memory>
#include <string>

#include "03_network/loader.hpp"
#include "05_ranks/rank.hpp"
#include "16_recipe/dropout.hpp"
#include "19_checkpoint_failover/training_state.hpp"
#include "22_sharded/blocks.hpp"
#include "common/data/random.hpp"

namespace ddp {

// A model, made on a Device of pinned_memory, and this rank's part of each step.
class StageModel {
  public:
    virtual ~StageModel() = default;
    virtual Module& module() = 0;
    virtual Blocks blocks() = 0;
    // Returns what a step takes besides parameters, gradients and moments, in bytes.
    virtual std::size_t activations() const = 0;

    // Gets ready to train on `device`, on this rank's samples. Everything must outlive this object.
    virtual void prepare(Rank& rank, Device& device, const LabelledImages& images) = 0;
    // Computes the loss of the batch that comes at this point of the training, which may have begun
    // elsewhere. If an epoch has ended, `state` becomes the beginning of the next one.
    virtual Variable loss(Tape& tape, TrainingState& state) = 0;
};

// Makes a "mlp" or a "transformer". Steps take `batch` samples on each rank. `host` must outlive
// the result.
std::unique_ptr<StageModel> make_stage_model(const std::string& name, Device& host, int batch,
                                             std::uint64_t seed);

}  // namespace ddp
