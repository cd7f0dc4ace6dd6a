#pragma once
// Two more operations for the tape, which computes batches with them: many samples at a time.
// They are plugged in from here: the tape of chapter 01 does not know them.
#include "01_sgd/tape.hpp"

namespace ddp {

// The product of two matrices, [n, inputs] by [inputs, outputs]: each output is a weighted sum of
// its sample's inputs. Throws std::invalid_argument if the shapes do not go together.
//
// Every sum is made in order, from the first term to the last. In the gradient of the weights that
// is a sum over the samples: it is made for these n samples first, and then added to what earlier
// micro-batches have left. (Chapter 03 leaves products to a library, which is faster and chooses an
// order of its own.)
Variable matrix_product(Variable x, Variable weights);

// The mean of all elements; one element.
Variable mean(Variable x);

}  // namespace ddp
