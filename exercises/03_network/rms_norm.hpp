#pragma once
// The contract of the exercise rms_norm: a layer that gives all rows the same size, as many
// language models have it in place of a LayerNorm (Zhang and Sennrich, 2019).
#include "01_sgd/tape.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// x is [rows, columns], gain is [columns], eps is 0 or more. Records "rms_norm" on the tape of x,
// with the inputs x and gain, and returns y, which is [rows, columns]:
//
//     y[r, c] = gain[c] x[r, c] / rms[r],  rms[r] = sqrt(mean of x[r, 0]^2, x[r, 1]^2, ... + eps)
//
// Task forward: y.
// Task input_gradient: backward, the gradient of x.
// Task gain_gradient: backward, the gradient of gain.
//
// Both gradients by the rules of the tape: an input whose gradient is not wanted is not asked for
// its target, and where something is already, it is added to.
Variable rms_norm(Variable x, Variable gain, float eps);

}  // namespace ddp
