// Adam. For every number, with g its gradient in step t:
//
//     mean   = beta1 * mean   + (1 - beta1) * g        the usual direction
//     square = beta2 * square + (1 - beta2) * g^2      the usual size, squared
//     value -= learning_rate * mean' / (sqrt(square') + eps)
//
// with mean' = mean / (1 - beta1^t) and square' = square / (1 - beta2^t). A gradient that is a
// hundred times as large makes mean and the root of square a hundred times as large, so the step
// stays the same: all parameters take steps of about the learning rate.
// (D. P. Kingma, J. Ba, "Adam: A Method for Stochastic Optimization", 2015.)
#include <cmath>
#include <stdexcept>

#include "03_network/layers/array_list.cuh"
#include "03_network/layers/fused_optimizers.hpp"
#include "03_network/layers/initialisers.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// The factors of one step. Both means begin at 0 and are too small at first; two factors make up
// for that: step_length = learning_rate / (1 - beta1^t), square_scale = 1 / sqrt(1 - beta2^t).
struct Lengths {
    float step_length, square_scale;
    float beta1, rest1, beta2, rest2;  // rest = 1 - beta
    float eps, weight_decay;
};

// Returns the factors of a parameter's step number `steps`, from 1. Powers and rests are computed
// in double: as a float, 1 - 0.999 has few correct digits.
Lengths lengths_of(double learning_rate, double weight_decay, double eps, int steps) {
    const double step_length = learning_rate / (1.0 - std::pow(Adam::beta1, steps));
    const double square_scale = 1.0 / std::sqrt(1.0 - std::pow(Adam::beta2, steps));
    return {static_cast<float>(step_length), static_cast<float>(square_scale),
            static_cast<float>(Adam::beta1), static_cast<float>(1.0 - Adam::beta1),
            static_cast<float>(Adam::beta2), static_cast<float>(1.0 - Adam::beta2),
            static_cast<float>(eps),         static_cast<float>(weight_decay)};
}

// Moves one number.
__device__ inline void move_by_adam(const Lengths& by, float gradient, float& mean, float& square,
                                    float& value) {
    const float g = gradient + by.weight_decay * value;
    mean = by.beta1 * mean + by.rest1 * g;
    square = by.beta2 * square + by.rest2 * g * g;
    value -= by.step_length * mean / (sqrtf(square) * by.square_scale + by.eps);
}

// Takes one step in one pass over the memory: four arrays are read, three are written.
__global__ void step_adam(std::size_t n, Lengths by, const float* __restrict__ gradient,
                          float* __restrict__ mean, float* __restrict__ square,
                          float* __restrict__ value) {
    for (std::size_t i : grid_range(n))
        move_by_adam(by, gradient[i], mean[i], square[i], value[i]);
}

}  // namespace

Adam::Adam(Parameters parameters, double learning_rate, double weight_decay, double eps)
    : Optimizer(std::move(parameters), learning_rate), weight_decay_(weight_decay), eps_(eps) {
    if (!(std::isfinite(weight_decay) && weight_decay >= 0))
        throw std::invalid_argument("the weight decay is " + std::to_string(weight_decay) +
                                    "; it must be 0 or a positive number, such as 0.0005");
    if (!(std::isfinite(eps) && static_cast<float>(eps) > 0))
        throw std::invalid_argument("eps is " + std::to_string(eps) +
                                    "; it must be a positive number, such as 1e-8");
    // Both means of every parameter begin at 0.
    for (const auto& parameter : parameters_) {
        const Tensor& value = parameter->value;
        states_.push_back({constant(value.device(), value.shape(), 0.0f),
                           constant(value.device(), value.shape(), 0.0f)});
    }
}

// The means and the count of steps are state, under PyTorch's names.
OptimizerState Adam::state() {
    OptimizerState state;
    for (std::size_t i = 0; i < parameters_.size(); i++) {
        const std::string& name = parameters_[i]->name;
        state.tensors.emplace_back(name + ".exp_avg", states_[i].mean);
        state.tensors.emplace_back(name + ".exp_avg_sq", states_[i].square);
        state.numbers.emplace_back(name + ".step", &states_[i].steps);
    }
    return state;
}

void Adam::step() {
    for (std::size_t i = 0; i < parameters_.size(); i++) {
        const Parameter& parameter = *parameters_[i];
        if (!parameter.has_gradient())
            continue;  // neither its value nor its means change, and t does not count the step
        State& state = states_[i];
        state.steps++;
        const Lengths by = lengths_of(learning_rate_, weight_decay_, eps_, state.steps);
        const Tensor& value = parameter.value;
        launch(value.device().stream(), grid_for(value.size()), step_adam, value.size(), by,
               parameter.gradient().data(), state.mean.data(), state.square.data(), value.data());
    }
}

// ---- The same, faster: one launch for all parameters

namespace {

// A parameter as its step sees it, with factors of its own: parameters that have missed
// steps have others.
struct AdaptingParameter {
    std::size_t size = 0;
    const float* gradient = nullptr;
    float *mean = nullptr, *square = nullptr, *value = nullptr;
    Lengths by{};
};

// Takes one step of all parameters in the list.
__global__ void step_all_by_adam(const __grid_constant__ ArrayList<AdaptingParameter> list) {
    for_each_element(list, [](const AdaptingParameter& one, std::size_t i) {
        move_by_adam(one.by, one.gradient[i], one.mean[i], one.square[i], one.value[i]);
    });
}

}  // namespace

void FusedAdam::step() {
    std::vector<AdaptingParameter> moving;
    for (std::size_t i = 0; i < parameters_.size(); i++) {
        if (!parameters_[i]->has_gradient())
            continue;
        State& state = states_[i];
        state.steps++;
        const Tensor& value = parameters_[i]->value;
        moving.push_back({value.size(), parameters_[i]->gradient().data(), state.mean.data(),
                          state.square.data(), value.data(),
                          lengths_of(learning_rate_, weight_decay_, eps_, state.steps)});
    }
    if (!moving.empty())
        launch_over(parameters_[0]->value.device().stream(), moving, step_all_by_adam);
}

}  // namespace ddp
