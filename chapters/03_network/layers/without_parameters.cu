#include "03_network/layers/without_parameters.hpp"

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// Computes max(x, 0). The comparison is written so that a NaN stays a NaN, and the loss shows it.
__global__ void relu_forward(std::size_t n, const float* x, float* y) {
    for (std::size_t i : grid_range(n))
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}

// Passes dy on where y > 0. That is where x > 0, so backward needs no x.
__global__ void relu_backward(std::size_t n, const float* y, const float* dy, float* dx,
                              bool accumulate) {
    for (std::size_t i : grid_range(n)) {
        const float contribution = y[i] > 0.0f ? dy[i] : 0.0f;
        dx[i] = accumulate ? dx[i] + contribution : contribution;
    }
}

// Copies dy to dx, or adds it: the numbers are the same in both shapes.
__global__ void pass_back(std::size_t n, const float* dy, float* dx, bool accumulate) {
    for (std::size_t i : grid_range(n))
        dx[i] = accumulate ? dx[i] + dy[i] : dy[i];
}

}  // namespace

Variable Relu::forward(Variable input) {
    const Tensor& x = input.value();
    Tensor y(x.device(), x.shape());
    launch(x.device().stream(), grid_for(y.size()), relu_forward, y.size(), x.data(), y.data());
    return input.tape->record(
        "relu", y, {input}, [y](const Tensor& dy, Tape::InputGradients& inputs) {
            if (!inputs.is_wanted(0))
                return;
            const GradientTarget dx = inputs.target(0);
            launch(dy.device().stream(), grid_for(y.size()), relu_backward, y.size(), y.data(),
                   dy.data(), dx.tensor.data(), dx.accumulate);
        });
}

Variable Flatten::forward(Variable input) {
    const Tensor& x = input.value();
    const int batch = x.dim(0);
    int features = 1;
    for (std::size_t i = 1; i < x.shape().size(); i++)
        features *= x.dim(i);
    return input.tape->record("flatten", x.reshaped({batch, features}), {input},
                              [](const Tensor& dy, Tape::InputGradients& inputs) {
                                  if (!inputs.is_wanted(0))
                                      return;
                                  const GradientTarget dx = inputs.target(0);
                                  launch(dy.device().stream(), grid_for(dy.size()), pass_back,
                                         dy.size(), dy.data(), dx.tensor.data(), dx.accumulate);
                              });
}

}  // namespace ddp
