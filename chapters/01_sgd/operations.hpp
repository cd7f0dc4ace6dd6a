#pragma once
// Four operations that record themselves on the tape: each has a kernel for forward and one for
// backward. They work element by element.
#include "01_sgd/tape.hpp"

namespace ddp {

// Each records its result on the tape of `a` and returns it, in the shape of its inputs. Those with
// two inputs throw std::invalid_argument if the shapes differ.
Variable multiply(Variable a, Variable b);
Variable add(Variable a, Variable b);
Variable subtract(Variable a, Variable b);
Variable square(Variable a);

}  // namespace ddp
