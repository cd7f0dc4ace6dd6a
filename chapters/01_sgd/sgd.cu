// The last two of a training step's four phases:
//
//     forward     values, left to right         the tape records
//     backward    gradients, right to left      tape.backward(loss)
//     step        value -= rate * gradient      optimizer.step()              here
//     zero        gradients become absent       optimizer.zero_gradients()    here
#include "01_sgd/sgd.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// Moves every element against its gradient. The elements are independent, so no thread waits for
// another.
__global__ void descend(std::size_t n, float learning_rate, const float* gradient, float* value) {
    for (std::size_t i : grid_range(n))
        value[i] -= learning_rate * gradient[i];
}

}  // namespace

Optimizer::Optimizer(Parameters parameters, double learning_rate)
    : parameters_(std::move(parameters)) {
    set_learning_rate(learning_rate);
    for (auto it = parameters_.begin(); it != parameters_.end(); it++)
        if (std::find(parameters_.begin(), it, *it) != it)
            throw std::invalid_argument("the parameter '" + (*it)->name +
                                        "' is listed twice, and would move twice: list it once");
    // Allocate the gradients now. Backward would otherwise take their memory from the blocks that
    // every step reuses, and the next step would have to allocate others.
    for (const auto& parameter : parameters_)
        if (!parameter->is_frozen && !parameter->has_gradient()) {
            parameter->gradient_for_writing();
            parameter->clear_gradient();
        }
}

void Optimizer::set_learning_rate(double learning_rate) {
    if (!(std::isfinite(learning_rate) && learning_rate > 0))
        throw std::invalid_argument("the learning rate is " + std::to_string(learning_rate) +
                                    "; it must be a positive number, such as 0.01");
    learning_rate_ = learning_rate;
}

void Optimizer::zero_gradients() {
    for (const auto& parameter : parameters_)
        parameter->clear_gradient();
}

OptimizerState Optimizer::state() {
    return {};
}

void PlainSgd::step() {
    for (const auto& parameter : parameters_) {
        if (!parameter->has_gradient())  // the loss did not depend on it
            continue;
        Tensor& value = parameter->value;
        launch(value.device().stream(), grid_for(value.size()), descend, value.size(),
               static_cast<float>(learning_rate_), parameter->gradient().data(), value.data());
    }
}

}  // namespace ddp
