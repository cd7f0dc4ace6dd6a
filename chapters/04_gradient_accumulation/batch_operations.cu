// Each operation, and what its backward adds to the gradients of its inputs (dy is the gradient of
// the output):
//
//     y = x w       x [n, inputs], w [inputs, outputs], y [n, outputs]
//                   dx [n, inputs]       = dy wᵀ     a sum over the outputs
//                   dw [inputs, outputs] = xᵀ dy     a sum over the samples
//     m = mean(x)   dx = dm / n for each of the n elements
//
// The sum over the samples is the one that micro-batches divide:
//
//     one batch               dw  = ((t1 + t2) + t3) + t4
//     two micro-batches       dw  = t1 + t2,   then   dw += t3 + t4
//
// So the last bits of dw may differ between the two, and are equal with one sample at a time.
#include "04_gradient_accumulation/batch_operations.hpp"

#include <algorithm>
#include <stdexcept>

#include "02_kernels/support/block_sum.cuh"
#include "common/gpu/gpu.hpp"
#include "common/gpu/rows.hpp"

namespace ddp {
namespace {

constexpr std::size_t strip_width = 32;  // elements of a row that a thread computes at a time

// product [rows, columns] (+)= a b, where a(row, k) is a[row * row_step + k * k_step] and b is
// [depth, columns]. With the two steps exchanged it multiplies by the transposed matrix. (+)= adds
// if `accumulate` is true and overwrites otherwise.
__global__ void product_kernel(std::size_t rows, std::size_t depth, std::size_t columns,
                               const float* a, std::size_t row_step, std::size_t k_step,
                               const float* b, float* product, bool accumulate) {
    const std::size_t strips = (columns + strip_width - 1) / strip_width;
    for (std::size_t strip : grid_range(rows * strips)) {
        const std::size_t row = strip / strips;
        const std::size_t first = strip % strips * strip_width;
        const std::size_t width = std::min(std::size_t{strip_width}, columns - first);
        // A strip of the row at a time: its sums stay in registers, each in the order of k.
        float sum[strip_width] = {};
        for (std::size_t k = 0; k < depth; k++) {
            const float factor = a[row * row_step + k * k_step];
            const float* terms = b + k * columns + first;
            for (std::size_t i = 0; i < width; i++)
                sum[i] += factor * terms[i];
        }
        // The sums are complete before they are added to the earlier micro-batches' gradient.
        float* result = product + row * columns + first;
        for (std::size_t i = 0; i < width; i++)
            result[i] = accumulate ? result[i] + sum[i] : sum[i];
    }
}

// dx [n, inputs] (+)= dy [n, outputs] times the transposed weights [inputs, outputs].
__global__ void input_gradient(std::size_t n, std::size_t inputs, std::size_t outputs,
                               const float* dy, const float* weights, float* dx, bool accumulate) {
    for (std::size_t element : grid_range(n * inputs)) {
        const float* upstream = dy + element / inputs * outputs;
        const float* factors = weights + element % inputs * outputs;
        float sum = 0.0f;
        for (std::size_t output = 0; output < outputs; output++)
            sum += upstream[output] * factors[output];
        dx[element] = accumulate ? dx[element] + sum : sum;
    }
}

// *result = the mean of n elements, in one block. The block's threads add them up as in 02_kernels.
__global__ void mean_forward(std::size_t n, const float* x, float* result) {
    const float sum = sum_by_block<float>(n, [=](std::size_t i) { return x[i]; });
    if (threadIdx.x == 0)
        *result = sum / n;
}

// gradient (+)= upstream / n for each of the n elements; `upstream` is one number.
__global__ void mean_backward(std::size_t n, const float* upstream, float* gradient,
                              bool accumulate) {
    for (std::size_t i : grid_range(n))
        gradient[i] = accumulate ? gradient[i] + *upstream / n : *upstream / n;
}

}  // namespace

Variable matrix_product(Variable x, Variable weights) {
    const Tensor a = x.value();
    const Tensor w = weights.value();
    if (a.shape().size() != 2 || w.shape().size() != 2 || a.dim(1) != w.dim(0))
        throw std::invalid_argument(
            "matrix_product needs [n, inputs] and [inputs, outputs], "
            "not " +
            to_string(a.shape()) + " and " + to_string(w.shape()));
    const auto n = static_cast<std::size_t>(a.dim(0));
    const auto inputs = static_cast<std::size_t>(a.dim(1));
    const auto outputs = static_cast<std::size_t>(w.dim(1));
    // A thread computes a strip of a row.
    const auto shape_for = [](std::size_t rows, std::size_t columns) {
        return grid_for(rows * ((columns + strip_width - 1) / strip_width));
    };
    Device& device = x.tape->device();
    const Tensor y(device, {a.dim(0), w.dim(1)});
    launch(device.stream(), shape_for(n, outputs), product_kernel, n, inputs, outputs, a.data(),
           inputs, std::size_t{1}, w.data(), y.data(), false);
    return x.tape->record(
        "matrix_product", y, {x, weights}, [=](const Tensor& dy, Tape::InputGradients& gradients) {
            Stream& stream = dy.device().stream();
            if (gradients.is_wanted(0)) {
                const GradientTarget dx = gradients.target(0);
                launch(stream, grid_for(n * inputs), input_gradient, n, inputs, outputs, dy.data(),
                       w.data(), dx.tensor.data(), dx.accumulate);
            }
            if (gradients.is_wanted(1)) {
                // x transposed, times dy: the steps of `a` are exchanged.
                const GradientTarget dw = gradients.target(1);
                launch(stream, shape_for(inputs, outputs), product_kernel, inputs, n, outputs,
                       a.data(), std::size_t{1}, inputs, dy.data(), dw.tensor.data(),
                       dw.accumulate);
            }
        });
}

Variable mean(Variable x) {
    const Tensor values = x.value();
    Device& device = x.tape->device();
    const Tensor result(device, {1});
    launch(device.stream(), rows_for(1, values.size()), mean_forward, values.size(), values.data(),
           result.data());
    return x.tape->record(
        "mean", result, {x},
        [n = values.size()](const Tensor& upstream, Tape::InputGradients& inputs) {
            if (!inputs.is_wanted(0))
                return;
            const GradientTarget target = inputs.target(0);
            launch(upstream.device().stream(), grid_for(n), mean_backward, n, upstream.data(),
                   target.tensor.data(), target.accumulate);
        });
}

}  // namespace ddp
