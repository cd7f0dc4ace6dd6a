// One thread adds up all squares: the numbers are few, and their order is always the same.
#include "squared_error.hpp"

#include "common/gpu/gpu.hpp"

using namespace ddp;

__global__ void forward_kernel(std::size_t n, const float* output, const float* target,
                               float* mean) {
    float sum = 0;
    for (std::size_t i = 0; i < n; i++)
        sum += (output[i] - target[i]) * (output[i] - target[i]);
    *mean = sum / static_cast<float>(n);
}

__global__ void backward_kernel(std::size_t n, const float* upstream, const float* output,
                                const float* target, float* gradient, bool accumulate) {
    for (std::size_t i : grid_range(n)) {
        const float contribution = *upstream * 2 * (output[i] - target[i]) / static_cast<float>(n);
        gradient[i] = accumulate ? gradient[i] + contribution : contribution;
    }
}

Variable squared_error(Variable output, const Tensor& target) {
    const Tensor value = output.value();
    Tensor mean(value.device(), {1});
    launch(value.device().stream(), {1, 1}, forward_kernel, value.size(), value.data(),
           target.data(), mean.data());
    return output.tape->record(
        "squared_error", mean, {output},
        [value, target](const Tensor& upstream, Tape::InputGradients& inputs) {
            const GradientTarget place = inputs.target(0);
            launch(value.device().stream(), {1, 64}, backward_kernel, value.size(), upstream.data(),
                   value.data(), target.data(), place.tensor.data(), place.accumulate);
        });
}
