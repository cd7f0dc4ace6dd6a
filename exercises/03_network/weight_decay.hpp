#pragma once
// The contract of the exercise weight_decay: what the chapter's optimizers make of a weight decay,
// and the one that decays the weights themselves.
#include <memory>

#include "01_sgd/sgd.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Task sgd. A parameter begins at `value`. Its gradient is 0 in each of `steps` steps of the
// chapter's Sgd (present, and 0). Where does it end?
double after_sgd(double value, double learning_rate, double momentum, double weight_decay,
                 int steps);

// Task adam. A parameter with `value` and `gradient` makes its first step, with the chapter's Adam.
// Where does it end?
double after_first_adam_step(double value, double gradient, double learning_rate,
                             double weight_decay);

// Task adamw. AdamW (Loshchilov and Hutter, 2019), as PyTorch has it: a step first makes each
// parameter smaller, value -= learning_rate * weight_decay * value, and is then a step of Adam
// without weight decay. A parameter without a gradient is left alone. The learning rate may change
// from step to step (set_learning_rate).
std::unique_ptr<Optimizer> make_adamw(Parameters parameters, double learning_rate,
                                      double weight_decay);

}  // namespace ddp
