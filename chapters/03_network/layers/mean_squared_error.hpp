#pragma once
// The loss of a model that predicts numbers.
#include "01_sgd/tape.hpp"

namespace ddp {

// Returns the mean of (prediction - target)^2 over all elements, one element. `target` is a
// constant. Throws std::invalid_argument if the shapes differ.
Variable mean_squared_error(Variable prediction, const Tensor& target);

}  // namespace ddp
