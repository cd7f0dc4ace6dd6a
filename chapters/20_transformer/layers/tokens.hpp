#pragma once
// Tokens on the device: the batch that forward and loss take, and how long its sentences are.
#include <array>
#include <vector>

#include "01_sgd/tensor.hpp"
#include "20_transformer/words/token_batches.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {

using Tokens = BasicTensor<int>;  // the numbers of tokens

struct DeviceBatch {
    Tokens source, target_in;  // [sentences, length]
    Labels target_out;         // [sentences * length]: a label for each row of scores
};
// Copies a batch to the device, and waits for it. An empty target_out stays empty.
DeviceBatch to_device(Device& device, const TokenBatch& batch);

// Copies the batches of a training to the device. The host does not wait for the device, as it
// would for a copy from memory that is not pinned: while the device computes with one batch, the
// next one is in the stream already.
class TokenSlots {
  public:
    // Allocates pinned memory for batches of up to `max_tokens` places, sentences x length (see
    // max_tokens_of_share). `device` must outlive the slots.
    TokenSlots(Device& device, std::size_t max_tokens);

    // Enqueues the copy of a batch on the device's stream; `batch` may go when the call returns.
    // Waits only for the copy of two batches ago. Throws std::invalid_argument if the batch is
    // larger than max_tokens.
    DeviceBatch to_device(const TokenBatch& batch);

  private:
    // Two are enough, as in the loader of 03_network: copies stand in the stream that computes, so
    // the copy of two batches ago is done as soon as the device has begun with that batch.
    struct Slot {
        PinnedBuffer<int> host;  // source, target_in, target_out, one behind the other
        Event copied;            // `host` may be filled again
    };

    Device& device_;
    std::array<Slot, 2> slots_;
    std::size_t next_ = 0;
};

// Returns the rows, padded to the longest: [rows, length].
Tokens padded(Device& device, const std::vector<std::vector<int>>& rows);

// Returns for each sentence of `tokens` [sentences, length] how many tokens it has without the
// padding behind them.
Labels lengths_without_padding(const Tokens& tokens);

}  // namespace ddp
