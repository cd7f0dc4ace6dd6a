#pragma once
// The contract of the exercise last_group: how large a micro-batch may be, and an epoch of which
// nobody knows beforehand where it ends.
#include <cstddef>
#include <functional>
#include <optional>

#include "01_sgd/sgd.hpp"
#include "04_gradient_accumulation/accumulate.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// A network that is made as the chapter's PictureModel, with one hidden layer more; no biases:
//
//     x [n, inputs]  product  square  product  square  product  subtract y  square  mean
//                    hidden1          hidden2          outputs
//
// x and y are copied to the device for each micro-batch. The optimizer is plain SGD.
struct NetworkSizes {
    int inputs = 0, hidden1 = 0, hidden2 = 0, outputs = 0;
};

// Task largest. With how many samples at a time does a step fit into `budget` bytes of device
// memory, at most? 0 if with none. Memory is given out in blocks of 512 bytes: do not count that.
int largest_micro_batch(const NetworkSizes& sizes, std::size_t budget);

// Task unknown_end. One epoch of training. `next` gives the micro-batches one after the other, and
// std::nullopt when there are no more; it cannot say beforehand how many there will be, or how many
// samples each has. After every `group` micro-batches there is a step, and one for what is left in
// the end. Returns how many steps there were.
//
// When optimizer.step() is called, the gradients are those of the mean loss over all samples since
// the step before, of which each counts as much as any other. In the end they are absent. Only one
// micro-batch is on the tape at a time: accumulate() sees to that.
int train_epoch(Device& device, Optimizer& optimizer, const MeanLoss& loss_of,
                const std::function<std::optional<Samples>()>& next, int group);

}  // namespace ddp
