#pragma once
// Exercise rms_norm: a layer that gives all rows the same size. Many language models use it instead
// of a LayerNorm (Zhang and Sennrich, 2019).
//
//     x = (3, 4), gain = (1, 2), eps = 0:   rms = sqrt((9 + 16) / 2) = 3.54,   y = (0.85, 2.26)
//
// You may call: x.value() and gain.value(), with .data(), .dim(i) and .shape(); x.tape->device(),
// with .stream(), and x.tape->record(name, y, inputs, backward); in backward is_wanted(i) and
// target(i); launch(stream, grid_for(n), kernel, arguments...); in a kernel grid_range(n).
// The check also tries: a row of zeros, more columns than a block has threads, more
// rows, and a second backward on the same record.
#include "01_sgd/tape.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Computes y [rows, columns] from x [rows, columns] and gain [columns], and records "rms_norm" on
// the tape of x, with the inputs x and gain:
//
//     y[r, c] = gain[c] x[r, c] / rms[r],  rms[r] = sqrt(mean of x[r, 0]^2, x[r, 1]^2, ... + eps)
//
// Task forward: y.
// Task input_gradient: the gradient of x, in backward.
// Task gain_gradient: the gradient of gain, in backward.
Variable rms_norm(Variable x, Variable gain, float eps);

}  // namespace ddp
