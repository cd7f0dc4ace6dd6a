// Cross entropy. One row of logits, three classes, the label is 1:
//
//     logits        2.0    1.0    0.1
//     softmax       0.66   0.24   0.10      exp(logit) / sum: probabilities that add up to 1
//     loss                 1.42             -log(0.24)
//     gradient      0.66  -0.76   0.10      softmax, minus 1 at the label
//
// The loss of a batch is the mean over its rows. Forward has the probabilities, and so computes the
// rows' gradients, too; backward only scales them.
#include "03_network/cross_entropy.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "02_kernels/support/block_sum.cuh"
#include "common/gpu/gpu.hpp"
#include "common/gpu/rows.hpp"

namespace ddp {
namespace {

// Returns the loss of one row, and computes its gradient with respect to the row's logits.
__device__ float row_loss(int classes, const float* logits, int label, float* gradient) {
    // Subtract the largest logit: that changes no probability, and exp is then at most 1.
    float largest = logits[0];
    for (int c = 1; c < classes; c++)
        largest = logits[c] > largest ? logits[c] : largest;
    float sum = 0.0f;
    for (int c = 0; c < classes; c++) {
        gradient[c] = expf(logits[c] - largest);
        sum += gradient[c];
    }
    // Softmax: divide by the sum.
    for (int c = 0; c < classes; c++)
        gradient[c] /= sum;
    // A label that is not a class: the loss shows it as a NaN, and the memory is left alone.
    if (label < 0 || label >= classes)
        return std::numeric_limits<float>::quiet_NaN();
    // The gradient is softmax, minus 1 at the label. The loss is -log(exp(logit - largest) / sum),
    // written without a quotient, which could round to 0.
    gradient[label] -= 1.0f;
    return logf(sum) + largest - logits[label];
}

// Computes the rows' losses and gradients, and the mean of the losses. One block is enough for a
// batch, and saves a launch. Each thread computes whole rows.
__global__ void mean_loss(int batch, int classes, const float* logits, const int* labels,
                          float* losses, float* gradients, float* mean) {
    for (std::size_t row : column_range(batch))
        losses[row] =
            row_loss(classes, logits + row * classes, labels[row], gradients + row * classes);
    // The threads add up their losses as in 02_kernels.
    const float sum = sum_by_block<float>(batch, [=](std::size_t row) { return losses[row]; });
    if (threadIdx.x == 0)
        *mean = sum / batch;
}

// Writes or adds upstream / batch times the rows' gradients. `upstream` is the gradient of the loss
// itself, usually 1; `share` is 1 / batch.
__global__ void scale_gradient(std::size_t n, float share, const float* upstream,
                               const float* row_gradients, float* gradient, bool accumulate) {
    const float factor = *upstream * share;
    for (std::size_t i : grid_range(n)) {
        const float contribution = factor * row_gradients[i];
        gradient[i] = accumulate ? gradient[i] + contribution : contribution;
    }
}

}  // namespace

Variable cross_entropy(Variable logits, const Labels& labels) {
    const Tensor& x = logits.value();
    if (x.shape().size() != 2 || labels.shape() != Shape{x.dim(0)})
        throw std::invalid_argument(
            "cross_entropy takes logits [batch, classes] and as many labels, not " +
            to_string(x.shape()) + " and " + to_string(labels.shape()));
    Device& device = x.device();
    const int batch = x.dim(0);
    const Tensor losses(device, {batch}), gradients(device, x.shape()), loss(device, {1});
    launch(device.stream(), rows_for(1, losses.size()), mean_loss, batch, x.dim(1), x.data(),
           labels.data(), losses.data(), gradients.data(), loss.data());
    return logits.tape->record(
        "cross_entropy", loss, {logits},
        [batch, gradients](const Tensor& upstream, Tape::InputGradients& inputs) {
            if (!inputs.is_wanted(0))
                return;
            const GradientTarget target = inputs.target(0);
            launch(upstream.device().stream(), grid_for(gradients.size()), scale_gradient,
                   gradients.size(), 1.0f / batch, upstream.data(), gradients.data(),
                   target.tensor.data(), target.accumulate);
        });
}

}  // namespace ddp
