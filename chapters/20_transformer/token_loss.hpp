#pragma once
// The loss of a model that predicts tokens: cross entropy that leaves padding out.
#include "01_sgd/tape.hpp"

namespace ddp {

// Returns the sum, over the tokens that are not padding, of the smoothed cross entropy, divided by
// `divisor`; one element. `smoothing` is the share of the target's probability that is spread
// evenly over the whole vocabulary (Szegedy et al., 2016). It is PyTorch's
// CrossEntropyLoss(ignore_index=pad_token, label_smoothing=smoothing, reduction="sum") / divisor.
//
// `divisor` decides what the ranks' mean is a mean of. This rank's number of tokens makes it
// PyTorch's reduction="mean"; the number of all ranks' tokens, divided by the number of ranks,
// makes the mean over the ranks the mean over all tokens.
//
// `logits` is [rows, vocabulary], `target` has one token for each row. A token beyond the
// vocabulary makes the loss a NaN. Throws std::invalid_argument if there are not as many targets as
// rows, smoothing is not within [0, 1), or divisor is not positive.
Variable token_loss(Variable logits, const Labels& target, double smoothing, double divisor);

}  // namespace ddp
