#pragma once
// Four operations that record themselves, each a kernel for forward and one for backward. Element
// by element; both inputs have the same shape.
#include "01_sgd/tape.hpp"

namespace ddp {

Variable multiply(Variable a, Variable b);
Variable add(Variable a, Variable b);
Variable subtract(Variable a, Variable b);
Variable square(Variable a);

}  // namespace ddp
