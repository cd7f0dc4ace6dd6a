#pragma once
// Local SGD: every rank steps alone, and every few steps all ranks take the mean of their
// parameters.
#include <functional>

#include "01_sgd/sgd.hpp"
#include "09_all_reduce/communicator.hpp"

namespace ddp {

// `steps` steps; after every `every` of them, and after the last, `values` (all of the optimizer's
// parameters, in memory of the communicator) becomes the mean over all ranks. All ranks call it
// together and with the same numbers. `compute` leaves the rank's own gradients in the parameters.
// Returns how often all ranks have met.
int local_sgd(Communicator& communicator, const Tensor& values, Optimizer& optimizer, int steps,
              int every, const std::function<void(int step)>& compute);

}  // namespace ddp
