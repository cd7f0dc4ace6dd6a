#pragma once
// Local SGD: every rank steps alone, and every few steps all ranks average their parameters.
#include <functional>

#include "01_sgd/sgd.hpp"
#include "09_all_reduce/communicator.hpp"

namespace ddp {

// Does `steps` steps. After every `every` of them, and after the last, replaces `values` by its
// mean over all ranks: `values` are all of the optimizer's parameters, in memory of the
// communicator. `compute` leaves this rank's own gradients in the parameters. Returns the number of
// averages. All ranks call it together and with the same numbers. Throws std::invalid_argument if
// `every` is below 1.
int local_sgd(Communicator& communicator, const Tensor& values, Optimizer& optimizer, int steps,
              int every, const std::function<void(int step)>& compute);

}  // namespace ddp
