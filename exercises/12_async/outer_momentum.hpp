#pragma once
// The contract of the exercise outer_momentum: local SGD, and an optimizer that takes what the
// ranks did between two meetings for a gradient.
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// What one rank's data wants of the only parameter w: its loss is curvature (w - target)^2 / 2.
struct LocalLoss {
    double curvature, target;
};

// Task resting_point. The chapter's local SGD, a step is w -= learning_rate * gradient of the
// rank's own loss, and all ranks meet after every `every` steps. After very many meetings the w
// that they agree on no longer changes: where is that? learning_rate * curvature lies between 0
// and 1.
double resting_point(const std::vector<LocalLoss>& ranks, double learning_rate, int every);

struct OuterOptions {
    double learning_rate = 0.7;
    double momentum = 0.9;
};

// Task outer_step. What all ranks do at a meeting, instead of going on from the mean. `agreed` is
// what they went on from after the last meeting, and becomes what they go on from now; `mean` is
// the mean of what they have come to in between. `velocity` is 0 before the first meeting, and is
// kept for the next. The outer gradient points from the mean to `agreed`; the step is that of
// PyTorch's SGD with nesterov=True. With a learning rate of 1 and no momentum it is local SGD.
void outer_step(const OuterOptions& options, std::vector<float>& agreed,
                std::vector<float>& velocity, const std::vector<float>& mean);

}  // namespace ddp
