#pragma once
// Two more operations for the tape, for batches: many samples at a time. They use the tape's
// record(), and the tape of 01_sgd need not know them.
#include "01_sgd/tape.hpp"

namespace ddp {

// Records the product of two matrices, [n, inputs] times [inputs, outputs], and returns it,
// [n, outputs]: each output is a weighted sum of its sample's inputs. Throws std::invalid_argument
// if the shapes do not match.
//
// Every sum is computed in order, from the first term to the last. The gradient of the weights is
// a sum over the samples: it is computed for these n samples first, and then added to the gradient
// of the earlier micro-batches. (03_network leaves products to a library, which is faster and
// chooses its own order.)
Variable matrix_product(Variable x, Variable weights);

// Records the mean of all elements and returns it, [1].
Variable mean(Variable x);

}  // namespace ddp
