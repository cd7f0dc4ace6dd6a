#pragma once
// Reads source, target and lengths out of the tensor of token numbers that the model is given.
#include "01_sgd/tensor.hpp"

namespace ddp {

// Returns row 0 (the source) or 1 (the target) of every sentence: [sentences, 2, length] ->
// [sentences, length].
Tensor token_rows(const Tensor& tokens, int row);

// Returns for each sentence of `tokens` [sentences, length] how many tokens it has without the
// padding behind them.
Labels lengths_without_padding(const Tensor& tokens);

}  // namespace ddp
