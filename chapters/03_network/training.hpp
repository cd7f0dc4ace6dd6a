#pragma once
// The training step and the epoch, and whether the loss is still a number.
#include <functional>
#include <string>

#include "01_sgd/sgd.hpp"
#include "03_network/layers/sequential.hpp"
#include "03_network/loader.hpp"
#include "03_network/metrics.hpp"
#include "03_network/optimizers.hpp"
#include "common/gpu/step_times.hpp"

namespace ddp {

// Trains a model. It owns only the tape.
class Trainer {
  public:
    // All four must outlive the trainer.
    Trainer(Device& device, Sequential& model, Optimizer& optimizer, StepTimes& times);

    // Enqueues one step: forward, backward, step, zero. Adds the step's loss and accuracy to
    // `metrics`. Does not wait for the device.
    void step(const Batch& batch, Metrics& metrics);

    // Trains on all batches of the order that loader.start_epoch was given, with a progress bar
    // called `name`; returns the epoch's totals. Throws std::runtime_error if the loss is no longer
    // a number, with the step at which that began, counted from 1 over all epochs.
    Metrics::Totals epoch(Loader& loader, const std::string& name);

  private:
    void require_finite(const Metrics::Totals& totals) const;

    Device& device_;
    Sequential& model_;
    ZeroedGradients gradients_;
    StepTimes& times_;
    Tape tape_;
    int steps_before_ = 0;  // steps of earlier epochs
};

// Returns loss and accuracy of the model, in evaluation mode, over all batches of the order that
// loader.start_epoch was given.
Metrics::Totals evaluate(Device& device, Sequential& model, Loader& loader);

// ---- The rest can wait: steps without an epoch around them

// Takes single steps, each with its own loss: for the demonstrations and benches of later
// chapters.
class SmallTraining {
  public:
    // Both must outlive this object.
    SmallTraining(Device& device, Optimizer& optimizer) : gradients_(optimizer), tape_(device) {}

    // Takes a step, and returns its loss, on the device: `loss_of` records it on the tape.
    // `backward` replaces tape.backward(loss), and can do more before the optimizer's step, such
    // as averaging the gradients. Enqueues only.
    using Loss = std::function<Variable(Tape& tape)>;
    using Backward = std::function<void(Variable loss)>;
    Tensor step(const Loss& loss_of, const Backward& backward = {});
    // Takes a step with the gradients that `compute` leaves in the parameters, such as the sums
    // of several micro-batches or replicas.
    void step(const std::function<void()>& compute);

  private:
    ZeroedGradients gradients_;
    Tape tape_;
};

}  // namespace ddp
