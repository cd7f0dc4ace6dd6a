#pragma once
// Tokens on the device: the batch that forward and loss take, and how long its sentences are.
#include "01_sgd/tensor.hpp"
#include "20_transformer/words/token_batches.hpp"

namespace ddp {

using Tokens = BasicTensor<int>;  // the numbers of tokens

struct DeviceBatch {
    Tokens source, target_in;  // [sentences, length]
    Labels target_out;         // [sentences * length]: a label for each row of scores
};
// Copies a batch to the device. An empty target_out stays empty.
DeviceBatch to_device(Device& device, const TokenBatch& batch);

// Returns for each sentence of `tokens` [sentences, length] how many tokens it has without the
// padding behind them.
Labels lengths_without_padding(const Tokens& tokens);

}  // namespace ddp
