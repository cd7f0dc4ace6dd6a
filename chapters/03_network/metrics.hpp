#pragma once
// How well a model does, added up on the device so that the host need not wait at every step.
#include "01_sgd/tape.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {

// The class with the largest logit for each row of logits [batch, classes]; of equal ones the
// first.
Labels predict(const Tensor& logits);

class Metrics {
  public:
    struct Totals {
        double loss_sum = 0;  // a batch's mean counts as often as the batch has samples
        int correct = 0;
        int samples = 0;
        int steps = 0;            // calls of add
        int first_bad_step = -1;  // the first whose loss was infinite or no number; from 0

        double loss() const { return loss_sum / samples; }
        double accuracy() const { return static_cast<double>(correct) / samples; }
    };

    explicit Metrics(Device& device);

    // Enqueues the addition of one step: `loss` one element, the mean of the batch.
    void add(const Tensor& loss, const Tensor& logits, const Labels& labels);

    // What was added since the last reset(). Waits for the device's stream.
    Totals read() const;
    void reset();

  private:
    Device& device_;
    Buffer<Totals> totals_;
};

}  // namespace ddp
