#pragma once
// The contract of the exercise divide: one more operation for the tape, and the moment at which the
// tape knows that a gradient is final.
#include <string>
#include <vector>

#include "01_sgd/tape.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Task forward. Records "divide" on the tape of a, and returns a / b, element by element. Throws
// std::invalid_argument if a and b differ in shape.
//
// Task backward. The gradients of a and of b, by the rules of the tape: an input whose gradient is
// not wanted is not asked for its target, and where something is already, it is added to.
Variable divide(Variable a, Variable b);

// Task final_order. The names of the parameters for which tape.backward(loss, is_final) will call
// is_final, in the order of these calls. It is a prediction: backward is not called.
std::vector<std::string> final_order(const Tape& tape, Variable loss);

}  // namespace ddp
