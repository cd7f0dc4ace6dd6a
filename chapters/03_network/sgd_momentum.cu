// SGD with momentum: a ball that rolls downhill keeps its speed.
//
//     velocity = momentum * velocity + gradient      momentum 0.9: nine tenths of the speed stay
//     value   -= learning_rate * velocity
//
//     gradient     -1    -1    -1    -1    ...       always the same slope:
//     velocity     -1   -1.9  -2.7  -3.4   ... -10   the steps grow up to ten times as long
//
// Where the slope changes its sign from step to step, the steps cancel out instead.
#include "03_network/optimizers.hpp"

#include <cmath>
#include <stdexcept>

#include "03_network/layers/initialisers.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// The factors of one step, as kernels take them.
struct MomentumStep {
    float learning_rate, momentum, weight_decay;
};

// Takes one step. The whole formula is one pass over the memory, because reading and writing
// memory is what limits this kernel. `weight_decay` pulls every value towards 0.
__global__ void step_momentum(std::size_t n, MomentumStep step, const float* __restrict__ gradient,
                              float* __restrict__ velocity, float* __restrict__ value) {
    for (std::size_t i : grid_range(n)) {
        velocity[i] = step.momentum * velocity[i] + (gradient[i] + step.weight_decay * value[i]);
        value[i] -= step.learning_rate * velocity[i];
    }
}

}  // namespace

// The learning rate is checked by Optimizer. `!(a && b)` also refuses a NaN, for which every
// comparison is false.
Sgd::Sgd(Parameters parameters, double learning_rate, double momentum, double weight_decay)
    : Optimizer(std::move(parameters), learning_rate),
      momentum_(momentum),
      weight_decay_(weight_decay) {
    if (!(momentum >= 0 && momentum < 1))
        throw std::invalid_argument("the momentum is " + std::to_string(momentum) +
                                    "; it must be at least 0 and below 1, such as 0.9");
    if (!(std::isfinite(weight_decay) && weight_decay >= 0))
        throw std::invalid_argument("the weight decay is " + std::to_string(weight_decay) +
                                    "; it must be 0 or a positive number, such as 0.0005");
    // Every parameter begins at rest.
    for (const auto& parameter : parameters_)
        velocities_.push_back(constant(parameter->value.device(), parameter->value.shape(), 0.0f));
}

// The velocities are state: a run that is resumed without them takes different steps.
OptimizerState Sgd::state() {
    OptimizerState state;
    for (std::size_t i = 0; i < parameters_.size(); i++)
        state.tensors.emplace_back(parameters_[i]->name + ".momentum_buffer", velocities_[i]);
    return state;
}

void Sgd::step() {
    const MomentumStep step{static_cast<float>(learning_rate_), static_cast<float>(momentum_),
                            static_cast<float>(weight_decay_)};
    for (std::size_t i = 0; i < parameters_.size(); i++) {
        Parameter& parameter = *parameters_[i];
        if (!parameter.has_gradient())
            continue;  // neither its value nor its velocity changes
        const Tensor& value = parameter.value;
        launch(value.device().stream(), grid_for(value.size()), step_momentum, value.size(), step,
               parameter.gradient().data(), velocities_[i].data(), value.data());
    }
}

}  // namespace ddp
