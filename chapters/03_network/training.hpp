#pragma once
// One step of training, watched: where its time goes, and whether the loss is still a number.
#include <string>
#include <vector>

#include "01_sgd/sgd.hpp"
#include "03_network/layers/sequential.hpp"
#include "03_network/loader.hpp"
#include "03_network/metrics.hpp"
#include "03_network/sgd_momentum.hpp"

namespace ddp {

// Marks in the device's stream while a step is enqueued; the times between them, added up over all
// steps. The host waits for no step to end: marks are read one step later.
class StepTimes {
  public:
    explicit StepTimes(Device& device) : device_(device) {}

    // A step begins, and its first part.
    void begin();
    // What was enqueued since the last mark is the part `name`.
    void mark(const std::string& name);
    // The step is enqueued completely.
    void end();
    // Waits for the last step.
    void finish();

    struct Part {
        std::string name;
        double seconds = 0;  // of all steps
    };
    const std::vector<Part>& parts() const { return parts_; }  // in the order of a step
    int steps() const { return steps_; }
    double total() const;

  private:
    struct Step {
        std::vector<Event> events;       // used again and again
        std::vector<std::size_t> parts;  // part that ends at event i + 1
    };

    void add_up(Step& step);
    std::size_t part_of(const std::string& name);

    Device& device_;
    std::vector<Part> parts_;
    Step running_, previous_;
    int steps_ = 0;
};

// A model with all that trains it.
class Trainer {
  public:
    // All must live longer.
    Trainer(Device& device, Sequential& model, Optimizer& optimizer, StepTimes& times);

    // forward, backward, step, zero; adds loss and hits to `metrics`. Enqueues only.
    void step(const Batch& batch, Metrics& metrics);

    // One pass over what loader.start_epoch was given, with a progress bar of that name. Throws
    // std::runtime_error if the loss is no longer a number, with the step at which that began,
    // counted from 1 over all epochs.
    Metrics::Totals epoch(Loader& loader, const std::string& name);

  private:
    void require_finite(const Metrics::Totals& totals) const;

    Device& device_;
    Sequential& model_;
    ZeroedGradients gradients_;
    StepTimes& times_;
    Tape tape_;
    int steps_before_ = 0;  // of earlier epochs
};

// Loss and accuracy of the model, in evaluation, on what loader.start_epoch was given.
Metrics::Totals evaluate(Device& device, Sequential& model, Loader& loader);

}  // namespace ddp
