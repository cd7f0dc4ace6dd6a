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

#include "03_network/layers/array_list.cuh"
#include "03_network/layers/initialisers.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// The factors of one step, as kernels take them.
struct MomentumStep {
    float learning_rate, momentum, weight_decay;
    bool writes_zeros;
};

// Moves one number. `weight_decay` pulls every value towards 0.
__device__ inline void move_by_momentum(const MomentumStep& by, float& gradient, float& velocity,
                                        float& value) {
    velocity = by.momentum * velocity + (gradient + by.weight_decay * value);
    value -= by.learning_rate * velocity;
    if (by.writes_zeros)
        gradient = 0.0f;
}

// Takes one step. The whole formula is one pass over the memory, because reading and writing
// memory is what limits this kernel.
__global__ void step_momentum(std::size_t n, MomentumStep by, float* __restrict__ gradient,
                              float* __restrict__ velocity, float* __restrict__ value) {
    for (std::size_t i : grid_range(n))
        move_by_momentum(by, gradient[i], velocity[i], value[i]);
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
    const MomentumStep by{static_cast<float>(learning_rate_), static_cast<float>(momentum_),
                          static_cast<float>(weight_decay_), writes_zeros};
    for (std::size_t i = 0; i < parameters_.size(); i++) {
        Parameter& parameter = *parameters_[i];
        if (!parameter.has_gradient())
            continue;  // neither its value nor its velocity changes
        const Tensor& value = parameter.value;
        launch(value.device().stream(), grid_for(value.size()), step_momentum, value.size(), by,
               parameter.gradient().data(), velocities_[i].data(), value.data());
    }
}

// ---- The same, faster: one launch for all parameters

namespace {

// A parameter as its step sees it.
struct MovingParameter {
    std::size_t size = 0;
    float *gradient = nullptr, *velocity = nullptr, *value = nullptr;
};

// Takes one step of all parameters in the list.
__global__ void step_all_by_momentum(const __grid_constant__ ArrayList<MovingParameter> list,
                                     MomentumStep by) {
    for_each_element(list, [by](const MovingParameter& one, std::size_t i) {
        move_by_momentum(by, one.gradient[i], one.velocity[i], one.value[i]);
    });
}

}  // namespace

void FusedSgd::enqueue_step(bool writes_zeros) {
    const MomentumStep by{static_cast<float>(learning_rate_), static_cast<float>(momentum_),
                          static_cast<float>(weight_decay_), writes_zeros};
    std::vector<MovingParameter> moving;
    for (std::size_t i = 0; i < parameters_.size(); i++)
        if (parameters_[i]->has_gradient())
            moving.push_back({parameters_[i]->value.size(), parameters_[i]->gradient().data(),
                              velocities_[i].data(), parameters_[i]->value.data()});
    if (!moving.empty())
        launch_over(parameters_[0]->value.device().stream(), moving, step_all_by_momentum, by);
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
