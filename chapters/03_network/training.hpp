#pragma once
// The training step and the epoch, and whether the loss is still a number.
#include <string>

#include "01_sgd/sgd.hpp"
#include "03_network/layers/sequential.hpp"
#include "03_network/loader.hpp"
#include "03_network/metrics.hpp"
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
    Optimizer& optimizer_;
    StepTimes& times_;
    Tape tape_;
    int steps_before_ = 0;  // steps of earlier epochs
};

// Returns loss and accuracy of the model, in evaluation mode, over all batches of the order that
// loader.start_epoch was given.
Metrics::Totals evaluate(Device& device, Sequential& model, Loader& loader);

}  // namespace ddp
