#pragma once
// The contract of the exercise last_group: how large a micro-batch may be, and an epoch whose end
// is not known in advance.
#include <cstddef>
#include <functional>
#include <optional>

#include "01_sgd/sgd.hpp"
#include "04_gradient_accumulation/accumulate.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// The layers of a network like the chapter's PictureModel, with one more hidden layer and no
// biases:
//
//     x [n, inputs]  product  square  product  square  product  subtract y  square  mean
//                    hidden1          hidden2          outputs
//
// x and y are copied to the device for each micro-batch. The optimizer is plain SGD.
struct NetworkSizes {
    int inputs = 0, hidden1 = 0, hidden2 = 0, outputs = 0;
};

// Task largest. Returns the largest number of samples at a time with which a step fits into
// `budget` bytes of device memory; 0 if not even one sample fits.
// Ignores that memory is allocated in blocks of 512 bytes.
int largest_micro_batch(const NetworkSizes& sizes, std::size_t budget);

// Task unknown_end. Trains for one epoch and returns the number of steps. `next` returns the
// micro-batches one after the other, and std::nullopt when there are no more. Neither their number
// nor their sizes, of 1 or more, are known in advance. The data may go on for days: ask for the
// micro-batches of a group when the group before it has had its step (for the first of them
// earlier, if you like). There is a step after every `group` micro-batches, and one for the rest at
// the end.
//
// When optimizer.step() is called, the gradients are those of the mean loss over all samples since
// the previous step, each with the same weight. They are absent before the epoch, and at its end.
// Only one micro-batch is on the tape at a time, as accumulate() ensures.
int train_epoch(Device& device, Optimizer& optimizer, const MeanLoss& loss_of,
                const std::function<std::optional<Samples>()>& next, int group);

}  // namespace ddp
