#pragma once
// Exercise weight_decay: what the chapter's optimizers do with a weight decay, and one that decays
// the weights themselves.
//
//     value 4, gradient 0, learning rate 0.1, weight decay 0.5: after one step
//
//     Sgd and AdamW   4 - 0.1 * 0.5 * 4 = 3.8
//     Adam            3.9, and it would be 3.9 with a weight decay of 0.01
//
// You may call: Adam(parameters, learning_rate), with .step(), .set_learning_rate() and .state();
// parameter->has_gradient() and ->value, with .data(), .size() and .device().stream();
// launch(stream, grid_for(n), kernel, arguments...); in a kernel grid_range(n).
// The check also tries: no steps, a parameter without a gradient, a learning rate that changes.
#include <memory>

#include "01_sgd/sgd.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Task sgd. Returns the value of a parameter after `steps` steps of the chapter's Sgd. It begins at
// `value`, and its gradient is 0 in each step.
double after_sgd(double value, double learning_rate, double momentum, double weight_decay,
                 int steps);

// Task adam. Returns the value of a parameter after the first step of the chapter's Adam. Before
// the step it has `value` and `gradient`.
double after_first_adam_step(double value, double gradient, double learning_rate,
                             double weight_decay);

// Task adamw. Makes an AdamW as PyTorch's (Loshchilov and Hutter, 2019): a step first makes each
// parameter smaller, value -= learning_rate * weight_decay * value, and then takes a step of Adam
// without weight decay. Parameters without a gradient stay as they are. state() returns all that
// its steps depend on, so that a training that was saved can be resumed.
std::unique_ptr<Optimizer> make_adamw(Parameters parameters, double learning_rate,
                                      double weight_decay);

}  // namespace ddp
