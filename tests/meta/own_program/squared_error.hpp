#pragma once
// The loss of the autoencoder, an operation with kernels of its own.
#include "01_sgd/tape.hpp"

// Returns the mean over all elements of (output - target)².
ddp::Variable squared_error(ddp::Variable output, const ddp::Tensor& target);
