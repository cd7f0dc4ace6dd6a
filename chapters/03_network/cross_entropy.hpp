#pragma once
// The loss of a classifier.
#include "01_sgd/tape.hpp"

namespace ddp {

// The mean over the batch of -log(the probability given to the right class), where the
// probabilities are softmax(logits): exp(logit) over the sum of all classes' exp. Never overflows.
// logits [batch, classes]; labels [batch]. The result is one element. A label that is no class
// makes it NaN. Throws std::invalid_argument if there are not as many labels as rows.
Variable cross_entropy(Variable logits, const Labels& labels);

}  // namespace ddp
