#pragma once
// A batch larger than memory: it is computed in pieces, the micro-batches, one after the other.
// Their gradients add up, and one step is taken in the end.
//
// A batch's loss is the mean over its samples. A micro-batch's loss is a mean over fewer samples,
// so it counts for as much of the batch as it has of the batch's samples:
//
//     scale = samples of the micro-batch / samples of the batch
//
// With k micro-batches of one size that is 1 / k, the `loss / k` of PyTorch programs. Where the
// last one is smaller, or the last group of an epoch has fewer than k, 1 / k is wrong and this is
// not.
#include <functional>
#include <vector>

#include "01_sgd/tape.hpp"

namespace ddp {

// Samples first, first + 1, ... of a data set.
struct Samples {
    int first = 0;
    int count = 0;
};

struct MicroBatch {
    Samples samples;
    float scale = 1.0f;  // of its mean loss, in the loss of the whole batch
};

// `all` in pieces of `size`, in order; the last piece has what is left. Throws
// std::invalid_argument if there are no samples, or unless 1 <= size <= all.count.
std::vector<Samples> split(Samples all, int size);

// The batch in micro-batches of `size` samples, whose scales add up to 1. Throws as split does.
std::vector<MicroBatch> micro_batches(Samples batch, int size);

// Records the mean loss of these samples on the tape.
using MeanLoss = std::function<Variable(Tape& tape, Samples samples)>;

// Adds the gradient of the batch's mean loss to that of every parameter behind it, and returns that
// loss. Only one micro-batch is on the tape at a time, and none at the end. Neither steps nor
// zeroes gradients: both are done once a batch, by the caller. Waits for the device at every
// micro-batch.
double accumulate(Tape& tape, const std::vector<MicroBatch>& batch, const MeanLoss& loss_of);

}  // namespace ddp
