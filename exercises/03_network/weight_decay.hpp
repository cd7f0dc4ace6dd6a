#pragma once
// The contract of the exercise weight_decay: predictions of what the chapter's optimizers do with a
// weight decay, and an optimizer that decays the weights themselves.
#include <memory>

#include "01_sgd/sgd.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Task sgd. Returns the value of a parameter after `steps` steps of the chapter's Sgd. It begins at
// `value`, and its gradient is present and 0 in each step.
double after_sgd(double value, double learning_rate, double momentum, double weight_decay,
                 int steps);

// Task adam. Returns the value of a parameter after the first step of the chapter's Adam. Before
// the step it has `value` and `gradient`.
double after_first_adam_step(double value, double gradient, double learning_rate,
                             double weight_decay);

// Task adamw. Makes an AdamW (Loshchilov and Hutter, 2019) that does what PyTorch's does: a step
// first makes each parameter smaller, value -= learning_rate * weight_decay * value, and then takes
// a step of Adam without weight decay. It leaves parameters without a gradient alone. The learning
// rate may change from step to step (set_learning_rate). As with every Optimizer, a step enqueues
// its work, and the host does not wait; and state() returns all that its steps depend on, so that a
// training that was saved can be resumed.
std::unique_ptr<Optimizer> make_adamw(Parameters parameters, double learning_rate,
                                      double weight_decay);

}  // namespace ddp
