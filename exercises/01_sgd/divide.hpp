#pragma once
// Exercise divide: one more operation for the tape, and the order in which gradients become final.
//
//     a = (6, 5), b = (2, 4):   a / b = (3, 1.25)
//     u v w, made as (u v) w:   final_order() is w, u, v
//
// You may call: value() and tape of a Variable; tensor.shape(), .size(), .data(), .device();
// Tensor(device, shape); device.stream(); tape->record(name, value, inputs, backward), with
// is_wanted(i) and target(i) in backward; tape.nodes(); launch(stream, grid_for(n), kernel,
// arguments...); in a kernel grid_range(n).
// The check also tries: a / a, a frozen input, a second backward on the same record, operations
// that the loss does not depend on.
#include <string>
#include <vector>

#include "01_sgd/tape.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Task forward. Records "divide" on the tape of a, and returns a / b, element by element. Throws
// std::invalid_argument if a and b differ in shape.
// Task backward. Computes the gradients of a and of b, if they are wanted.
Variable divide(Variable a, Variable b);

// Task final_order. Returns the names of the parameters for which tape.backward(loss, is_final)
// will call is_final, in the order of these calls. It predicts: it does not call backward.
std::vector<std::string> final_order(const Tape& tape, Variable loss);

}  // namespace ddp
