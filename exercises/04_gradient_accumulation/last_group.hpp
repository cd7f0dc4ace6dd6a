#pragma once
// Exercise last_group: how large a micro-batch may be, and an epoch whose end is not known in
// advance.
//
//     largest       {2, 3, 3, 1} and 1104 bytes: 10 samples at a time
//     unknown_end   micro-batches of 3, 1 and 2 samples, 2 in a group: step 1 is for the samples
//                   0 to 3, step 2 for 4 and 5
//
// You may call: next(); accumulate(tape, micro_batches, loss_of) with a Tape tape(device);
// optimizer.step() and .zero_gradients().
// The check also tries: a budget that not even the parameters fit into; an epoch without any
// micro-batch.
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
// `budget` bytes of device memory. (Ignore that memory is allocated in blocks of 512 bytes.)
int largest_micro_batch(const NetworkSizes& sizes, std::size_t budget);

// Task unknown_end. Trains for one epoch and returns the number of steps: one after every `group`
// micro-batches, and one for the rest at the end. `next` returns the micro-batches, and
// std::nullopt when there are no more. A stream need not fit into memory: take a group's step
// before you collect the next group. Each step has the gradients of the mean loss over all of its
// samples, and none is left at the end.
int train_epoch(Device& device, Optimizer& optimizer, const MeanLoss& loss_of,
                const std::function<std::optional<Samples>()>& next, int group);

}  // namespace ddp
