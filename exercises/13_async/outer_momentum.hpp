#pragma once
// Exercise outer_momentum: local SGD, and an outer optimizer whose gradient is what the ranks' own
// steps have changed. At a meeting all ranks average their parameters.
//
//     learning rate 0.5, momentum 0.5     meeting 1    meeting 2
//     agreed at the last meeting              8           6.5
//     mean of the ranks                       6            6
//     outer gradient                          2           0.5
//     velocity                                2           1.5
//     agreed                                 6.5         5.875
//
// You may call: std::pow().
// The check also tries: two and three ranks, a meeting after every step, no momentum.
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// The loss of one rank's data, with a single parameter w: curvature (w - target)^2 / 2.
struct LocalLoss {
    double curvature, target;
};

// Task resting_point. A step is w -= learning_rate * gradient of the rank's own loss, and all ranks
// meet after every `every` steps. Returns the averaged w that no longer changes after very many
// meetings, without going through them.
double resting_point(const std::vector<LocalLoss>& ranks, double learning_rate, int every);

struct OuterOptions {
    double learning_rate = 0.7;
    double momentum = 0.9;
};

// Task outer_step. Takes the step of a meeting: from `agreed`, the parameters after the last
// meeting, to those after this one. `mean` is the mean of the ranks' parameters, and `velocity` is
// kept for the next meeting. The outer gradient points from the mean to `agreed`, and the step is
// that of PyTorch's SGD with nesterov=True. With a learning rate of 1 and no momentum this is local
// SGD.
void outer_step(const OuterOptions& options, std::vector<float>& agreed,
                std::vector<float>& velocity, const std::vector<float>& mean);

}  // namespace ddp
