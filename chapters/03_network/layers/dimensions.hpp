#pragma once
// Three operations along one dimension of tensors, counted from 0. No network of this book needs
// them; a reader's own may.
#include <vector>

#include "01_sgd/tape.hpp"

namespace ddp {

// Returns the inputs one behind the other along `dimension`; their shapes may differ there and
// nowhere else. (PyTorch: torch.cat.) Throws std::invalid_argument if there is no input, no such
// dimension or another difference.
Variable concat(const std::vector<Variable>& inputs, std::size_t dimension);

// Returns a copy of the `length` places from `first` on along `dimension`. (PyTorch: torch.narrow,
// which shares the memory.) Throws std::invalid_argument unless x has them and `length` is
// positive.
Variable slice(Variable x, std::size_t dimension, int first, int length);

// Returns the mean over `dimension`, which the result no longer has. (PyTorch: torch.mean with
// dim.) Throws std::invalid_argument if x has no such dimension, or nothing in it.
Variable mean(Variable x, std::size_t dimension);

}  // namespace ddp
