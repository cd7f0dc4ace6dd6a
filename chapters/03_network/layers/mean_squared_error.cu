#include "03_network/layers/mean_squared_error.hpp"

#include <stdexcept>

#include "02_kernels/block_reduce.cuh"
#include "common/gpu/gpu.hpp"
#include "common/gpu/rows.hpp"

namespace ddp {
namespace {

// Computes the loss, in one block: a batch is small (see cross_entropy.cu).
__global__ void mean_square(std::size_t n, const float* prediction, const float* target,
                            float* loss) {
    const float sum = sum_by_block<float>(n, [=](std::size_t i) {
        return (prediction[i] - target[i]) * (prediction[i] - target[i]);
    });
    if (threadIdx.x == 0)
        *loss = sum / n;
}

// Writes or adds 2 (prediction - target) / n, times the gradient of the loss itself.
__global__ void mean_square_backward(std::size_t n, const float* prediction, const float* target,
                                     const float* upstream, float* gradient, bool accumulate) {
    const float factor = 2.0f * *upstream / n;
    for (std::size_t i : grid_range(n)) {
        const float contribution = factor * (prediction[i] - target[i]);
        gradient[i] = accumulate ? gradient[i] + contribution : contribution;
    }
}

}  // namespace

Variable mean_squared_error(Variable prediction, const Tensor& target) {
    const Tensor x = prediction.value();
    if (x.shape() != target.shape())
        throw std::invalid_argument("mean_squared_error needs two tensors of one shape, not " +
                                    text_of(x.shape()) + " and " + text_of(target.shape()));
    Device& device = x.device();
    const Tensor loss(device, {1});
    launch(device.stream(), rows_for(1, x.size()), mean_square, x.size(), x.data(), target.data(),
           loss.data());
    return prediction.tape->record(
        "mean_squared_error", loss, {prediction},
        [x, target](const Tensor& upstream, Tape::InputGradients& inputs) {
            if (!inputs.is_wanted(0))
                return;
            const GradientTarget gradient = inputs.target(0);
            launch(upstream.device().stream(), grid_for(x.size()), mean_square_backward, x.size(),
                   x.data(), target.data(), upstream.data(), gradient.tensor.data(),
                   gradient.accumulate);
        });
}

}  // namespace ddp
