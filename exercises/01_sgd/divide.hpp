#pragma once
// The contract of the exercise divide: one more operation for the tape, and the order in which the
// tape reports gradients as final.
#include <string>
#include <vector>

#include "01_sgd/tape.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Task forward. Records "divide" on the tape of a, and returns a / b, element by element, in the
// shape of a. Throws std::invalid_argument if a and b differ in shape.
//
// Task backward. Computes the gradients of a and of b by the rules of the tape: it requests no
// target for an input whose gradient is not wanted, and adds to a target that holds something
// already (GradientTarget::accumulate).
//
// In both tasks kernels compute, on the device's stream, and the host does not wait for them.
Variable divide(Variable a, Variable b);

// Task final_order. Returns the names of the parameters for which tape.backward(loss, is_final)
// will call is_final, in the order of these calls. This is a prediction: it does not call backward.
// No two parameters have the same name.
std::vector<std::string> final_order(const Tape& tape, Variable loss);

}  // namespace ddp
