#pragma once
// The training step and the epoch; with them, where a step's time goes and whether the loss is
// still a number.
#include <string>
#include <vector>

#include "01_sgd/sgd.hpp"
#include "03_network/layers/sequential.hpp"
#include "03_network/loader.hpp"
#include "03_network/metrics.hpp"

namespace ddp {

// The times of a step's parts, added up over all steps. While a step is enqueued, mark() puts an
// event into the device's stream at the end of each part; the time between two events is that of a
// part. The events of a step are read one step later, so the host never waits for the step that it
// has just enqueued.
class StepTimes {
  public:
    // `device` must outlive this object.
    explicit StepTimes(Device& device) : device_(device) {}

    // Marks the beginning of a step and of its first part.
    void begin();
    // Marks the end of a part: all that was enqueued since the last mark belongs to part `name`.
    void mark(const std::string& name);
    // Ends the step: all its parts are enqueued. Adds up the times of the step before.
    void end();
    // Waits for the last step and adds up its times.
    void finish();

    struct Part {
        std::string name;
        double seconds = 0;  // the sum over all steps
    };
    const std::vector<Part>& parts() const { return parts_; }  // in the order of a step
    int steps() const { return steps_; }
    double total() const;

  private:
    struct Step {
        std::vector<Event> events;       // reused from step to step; event 0 is the beginning
        std::vector<std::size_t> parts;  // parts[i] ends at event i + 1
    };

    void add_up(Step& step);
    std::size_t part_of(const std::string& name);

    Device& device_;
    std::vector<Part> parts_;
    Step running_, previous_;
    int steps_ = 0;
};

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
