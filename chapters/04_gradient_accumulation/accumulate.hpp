#pragma once
// A batch larger than memory: it is divided into micro-batches, which are computed one after the
// other. Their gradients add up, and one step is taken at the end.
//
// A batch's loss is the mean over its samples. A micro-batch's loss is a mean over fewer samples.
// Its weight in the batch is its fraction of the samples:
//
//     scale = samples of the micro-batch / samples of the batch
//
// With k micro-batches of one size that is 1 / k, the `loss / k` of PyTorch programs. If the last
// micro-batch is smaller, or the last group of an epoch has fewer than k, 1 / k is wrong and this
// formula is still right.
#include <functional>
#include <vector>

#include "01_sgd/sgd.hpp"
#include "01_sgd/tape.hpp"

namespace ddp {

// Samples first, first + 1, ... of a data set.
struct Samples {
    int first = 0;
    int count = 0;
};

// Some of a batch's samples, and the weight of their mean loss in the loss of the batch.
struct MicroBatch {
    Samples samples;
    float scale = 1.0f;
};

// Divides `samples` into ranges of `size` samples, in order; the last range has the rest. Throws
// std::invalid_argument if there are no samples, or unless 1 <= size <= samples.count.
std::vector<Samples> split(Samples samples, int size);

// Divides the batch into micro-batches of `size` samples, whose scales add up to 1. Throws as
// split does.
std::vector<MicroBatch> micro_batches(Samples batch, int size);

// Records the mean loss of these samples on the tape and returns it, [1].
using MeanLoss = std::function<Variable(Tape& tape, Samples samples)>;

// Adds the gradient of the batch's mean loss to the gradient of every parameter that the loss
// depends on; returns that loss. Only one micro-batch is on the tape at a time, and none at the
// end. Neither steps nor clears gradients: the caller does both, once per batch. Waits for the
// device at every micro-batch.
double accumulate(Tape& tape, const std::vector<MicroBatch>& batch, const MeanLoss& loss_of);

// Accumulates, and then steps and clears the gradients. Returns the loss from before the step.
double learn_batch(Tape& tape, Optimizer& optimizer, const std::vector<MicroBatch>& batch,
                   const MeanLoss& loss_of);

}  // namespace ddp
