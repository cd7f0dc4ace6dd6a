#pragma once
// The contract of the exercise rms_norm: a layer that gives all rows the same size. Many language
// models use it instead of a LayerNorm (Zhang and Sennrich, 2019).
#include "01_sgd/tape.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Computes y [rows, columns] from x [rows, columns] and gain [columns], with eps at least 0, and
// records "rms_norm" on the tape of x, with the inputs x and gain:
//
//     y[r, c] = gain[c] x[r, c] / rms[r],  rms[r] = sqrt(mean of x[r, 0]^2, x[r, 1]^2, ... + eps)
//
// Task forward: y.
// Task input_gradient: the gradient of x, in backward.
// Task gain_gradient: the gradient of gain, in backward.
//
// Both gradients keep to the rules of the tape: ask for a target only if is_wanted() is true, and
// add to it if its `accumulate` is true. Kernels compute, on the device's stream, and the host does
// not wait for them.
Variable rms_norm(Variable x, Variable gain, float eps);

}  // namespace ddp
