#include "03_network/layers/flatten.hpp"

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// Copies dy to dx, or adds it: the numbers are the same in both shapes.
__global__ void pass_back(std::size_t n, const float* dy, float* dx, bool accumulate) {
    for (std::size_t i : grid_range(n))
        dx[i] = accumulate ? dx[i] + dy[i] : dy[i];
}

}  // namespace

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
