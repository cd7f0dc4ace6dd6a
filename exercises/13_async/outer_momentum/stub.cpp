// The exercise outer_momentum: local SGD, one level up. Read exercises/13_async/README.md first.
#include "exercises/13_async/outer_momentum.hpp"

#include <cmath>

namespace ddp {

double resting_point(const std::vector<LocalLoss>& ranks, double learning_rate, int every) {
    // How far towards its own target does a rank go between two meetings?
    throw NotImplemented("resting_point");
}

void outer_step(const OuterOptions& options, std::vector<float>& agreed,
                std::vector<float>& velocity, const std::vector<float>& mean) {
    // For each element: the gradient, the velocity, the step.
    throw NotImplemented("outer_step");
}

}  // namespace ddp
