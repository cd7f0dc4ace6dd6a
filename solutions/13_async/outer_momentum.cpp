// The exercise outer_momentum: local SGD, one level up. Read exercises/13_async/README.md first.
#include "exercises/13_async/outer_momentum.hpp"

#include <cmath>

namespace ddp {

double resting_point(const std::vector<LocalLoss>& ranks, double learning_rate, int every) {
    // stub: resting_point
    //: How far towards its own target does a rank go between two meetings?
    double sum = 0, weights = 0;
    for (const LocalLoss& loss : ranks) {
        const double progress = 1 - std::pow(1 - learning_rate * loss.curvature, every);
        sum += progress * loss.target;
        weights += progress;
    }
    return sum / weights;
    // end stub
}

void outer_step(const OuterOptions& options, std::vector<float>& agreed,
                std::vector<float>& velocity, const std::vector<float>& mean) {
    // stub: outer_step
    //: For each element: the gradient, the velocity, the step.
    const auto rate = static_cast<float>(options.learning_rate);
    const auto momentum = static_cast<float>(options.momentum);
    for (std::size_t i = 0; i < agreed.size(); i++) {
        const float gradient = agreed[i] - mean[i];
        velocity[i] = momentum * velocity[i] + gradient;
        agreed[i] -= rate * (gradient + momentum * velocity[i]);
    }
    // end stub
}

}  // namespace ddp
