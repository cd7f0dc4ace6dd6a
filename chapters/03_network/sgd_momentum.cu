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

// Takes one step. The whole formula is one pass over the memory, because reading and writing
// memory is what limits this kernel. `weight_decay` pulls every value towards 0.
__global__ void step_momentum(std::size_t n, float learning_rate, float momentum,
                              float weight_decay, bool writes_zeros, float* __restrict__ gradient,
                              float* __restrict__ velocity, float* __restrict__ value) {
    for (std::size_t i : grid_range(n)) {
        velocity[i] = momentum * velocity[i] + (gradient[i] + weight_decay * value[i]);
        value[i] -= learning_rate * velocity[i];
        if (writes_zeros)
            gradient[i] = 0.0f;
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
    enqueue_step(false);
}

void Sgd::step_and_write_zeros() {
    enqueue_step(true);
}

void Sgd::enqueue_step(bool writes_zeros) {
    for (std::size_t i = 0; i < parameters_.size(); i++) {
        Parameter& parameter = *parameters_[i];
        if (!parameter.has_gradient())
            continue;  // neither its value nor its velocity changes
        const Tensor& value = parameter.value;
        launch(value.device().stream(), grid_for(value.size()), step_momentum, value.size(),
               static_cast<float>(learning_rate_), static_cast<float>(momentum_),
               static_cast<float>(weight_decay_), writes_zeros, parameter.gradient().data(),
               velocities_[i].data(), value.data());
    }
}

// ---- The same, faster: backward adds to zeros

ZeroedGradients::ZeroedGradients(Optimizer& optimizer)
    : optimizer_(optimizer), sgd_(dynamic_cast<Sgd*>(&optimizer)) {}

void ZeroedGradients::step_and_zero() {
    // Only Sgd writes zeros while it steps. For others this is a step and a zero.
    if (sgd_ == nullptr) {
        optimizer_.step();
    } else {
        sgd_->step_and_write_zeros();
        // Remember where the zeros are: the next backward may add to them.
        for (const auto& parameter : optimizer_.parameters())
            if (parameter->has_gradient())
                zeros_[parameter.get()] = parameter->gradient().data();
    }
    optimizer_.zero_gradients();
}

void ZeroedGradients::begin_backward(Variable loss) {
    if (zeros_.empty())
        return;
    // Make these zeros the gradients of the parameters that this backward will reach.
    for (const auto& parameter : loss.tape->parameters_behind({loss})) {
        const auto zeros = zeros_.find(parameter.get());
        if (zeros == zeros_.end() || parameter->has_gradient())
            continue;
        if (parameter->gradient_for_writing().data() != zeros->second)
            parameter->clear_gradient();  // the gradient has moved to other memory since
    }
    zeros_.clear();  // what this pass does not reach, others may write to
}

}  // namespace ddp
