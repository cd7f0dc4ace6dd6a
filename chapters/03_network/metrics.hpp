#pragma once
// Loss and accuracy, added up on the device so that the host need not wait at every step.
#include "01_sgd/tape.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {

// Returns, for each row of `logits` [batch, classes], the class with the largest logit; among equal
// ones the first.
Labels predict(const Tensor& logits);

class Metrics {
  public:
    struct Totals {
        double loss_sum = 0;  // each batch's mean, weighted by its number of samples
        int correct = 0;
        int samples = 0;
        int steps = 0;            // calls of add
        int first_bad_step = -1;  // the first whose loss was infinite or NaN, from 0; -1: none

        double loss() const { return loss_sum / samples; }
        double accuracy() const { return static_cast<double>(correct) / samples; }
    };

    explicit Metrics(Device& device);

    // Enqueues the addition of one step. `loss` is one element, the mean over the batch; `logits`
    // is [batch, classes].
    void add(const Tensor& loss, const Tensor& logits, const Labels& labels);

    // Waits for the device's stream; returns the totals since the last reset().
    Totals read() const;
    // Waits for the device's stream; sets the totals back to zero.
    void reset();

  private:
    Device& device_;
    Buffer<Totals> totals_;
};

}  // namespace ddp
