#pragma once
// The contract of the exercise outer_momentum: local SGD, and an outer optimizer whose gradient is
// what the ranks' own steps have changed. A meeting is the moment at which all ranks average their
// parameters.
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// The loss of one rank's data, with a single parameter w: curvature (w - target)^2 / 2.
struct LocalLoss {
    double curvature, target;
};

// Task resting_point. In the chapter's local SGD a step is w -= learning_rate * gradient of the
// rank's own loss, and all ranks meet after every `every` steps. Returns the averaged w that no
// longer changes after very many meetings, without going through them. learning_rate * curvature is
// above 0 and at most 1.
double resting_point(const std::vector<LocalLoss>& ranks, double learning_rate, int every);

struct OuterOptions {
    double learning_rate = 0.7;
    double momentum = 0.9;
};

// Task outer_step. Takes the step that all ranks take at a meeting, instead of going on from the
// mean. `agreed` holds the parameters after the last meeting, and then those after this one. `mean`
// is the mean over the ranks of the parameters before this meeting. `velocity` is 0 before the
// first meeting, and is kept for the next. The outer gradient points from the mean to `agreed`, and
// the step is that of PyTorch's SGD with nesterov=True. With a learning rate of 1 and no momentum
// this is local SGD.
void outer_step(const OuterOptions& options, std::vector<float>& agreed,
                std::vector<float>& velocity, const std::vector<float>& mean);

}  // namespace ddp
