#pragma once
// The loss of a classifier.
#include "01_sgd/tape.hpp"

namespace ddp {

// Returns the mean over the batch of -log(p), one element, where p is the probability that the
// network gives to the right class. Softmax makes the probabilities: exp(logit) divided by the sum
// of exp over all classes. Large logits do not overflow.
//
// `logits` is [batch, classes], `labels` is [batch]. A label that is not a class makes the loss a
// NaN. Throws std::invalid_argument if there are not as many labels as rows.
Variable cross_entropy(Variable logits, const Labels& labels);

}  // namespace ddp
