// SGD with momentum: the steps of sgd_momentum.cu, in one launch for all parameters.
#include "03_network/layers/array_list.cuh"
#include "03_network/layers/fused_optimizers.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// A parameter as its step sees it.
struct MovingParameter {
    std::size_t size = 0;
    float *gradient = nullptr, *velocity = nullptr, *value = nullptr;
};

// Takes one step of all parameters in the list.
__global__ void step_all_by_momentum(const __grid_constant__ ArrayList<MovingParameter> list,
                                     float learning_rate, float momentum, float weight_decay,
                                     bool writes_zeros) {
    for_each_element(list, [=](const MovingParameter& one, std::size_t i) {
        float &gradient = one.gradient[i], &velocity = one.velocity[i], &value = one.value[i];
        velocity = momentum * velocity + (gradient + weight_decay * value);
        value -= learning_rate * velocity;
        if (writes_zeros)
            gradient = 0.0f;
    });
}

}  // namespace

void FusedSgd::step() {
    enqueue_step(false);
}

void FusedSgd::step_and_write_zeros() {
    enqueue_step(true);
}

void FusedSgd::enqueue_step(bool writes_zeros) {
    std::vector<MovingParameter> moving;
    for (std::size_t i = 0; i < parameters_.size(); i++)
        if (parameters_[i]->has_gradient())
            moving.push_back({parameters_[i]->value.size(), parameters_[i]->gradient().data(),
                              velocities_[i].data(), parameters_[i]->value.data()});
    if (!moving.empty())
        launch_over(parameters_[0]->value.device().stream(), moving, step_all_by_momentum,
                    static_cast<float>(learning_rate_), static_cast<float>(momentum_),
                    static_cast<float>(weight_decay_), writes_zeros);
}

// ---- Backward adds to zeros

ZeroedGradients::ZeroedGradients(Optimizer& optimizer)
    : optimizer_(optimizer), sgd_(dynamic_cast<FusedSgd*>(&optimizer)) {}

void ZeroedGradients::step_and_zero() {
    // Only FusedSgd writes zeros while it steps. For others this is a step and a zero.
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
