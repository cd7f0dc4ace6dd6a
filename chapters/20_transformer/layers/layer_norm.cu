// Layer normalisation. A row is one token; s = 1 / sqrt(variance + eps), over the row's numbers:
//
//     x      [ 2  4  6  8 ]          mean 5, variance 5
//     z      [-1.3 -0.4 0.4 1.3]     (x - mean) s: mean 0, variance 1
//     y      weight z + bias         a weight and a bias for each column
//
//     backward, with g = weight dy
//     dx      = s (g - mean of g - z * mean of g z)      means over the row: a row by itself
//     dweight = sum of dy z,  dbias = sum of dy          sums over all rows: a column by itself
//
// The two means in dx are there because each x also moves its row's mean and variance.
#include "20_transformer/layers/layer_norm.hpp"

#include <stdexcept>

#include "02_kernels/support/block_sum.cuh"
#include "03_network/layers/initialisers.hpp"
#include "03_network/layers/matrix.hpp"
#include "common/gpu/gpu.hpp"
#include "common/gpu/rows.hpp"

namespace ddp {
namespace {

// Computes y, and keeps z and s for backward. A block takes whole rows.
__global__ void layer_norm_forward(int rows, int width, float eps, const float* x,
                                   const float* weight, const float* bias, float* y, float* z,
                                   float* inverse_std) {
    const GridRange mine = column_range(width);
    const std::size_t first = mine.first, last = mine.last, step = mine.step;
    for (std::size_t row : row_range(rows)) {
        const float* from = x + row * width;  // this row's numbers
        // Mean and variance, one after the other: the mean of squares minus the square of the mean
        // would be lost in rounding where the mean is large.
        const float sum = sum_by_block<float>(width, [=](std::size_t c) { return from[c]; });
        const float mean = sum / width;
        const float squares = sum_by_block<float>(
            width, [=](std::size_t c) { return (from[c] - mean) * (from[c] - mean); });
        const float s = 1.0f / sqrtf(squares / width + eps);
        float* normalised = z + row * width;
        float* to = y + row * width;
#pragma omp simd
        for (std::size_t c = first; c < last; c += step) {
            normalised[c] = (from[c] - mean) * s;
            to[c] = normalised[c] * weight[c] + bias[c];
        }
        if (threadIdx.x == 0)
            inverse_std[row] = s;
    }
}

// Writes or adds dx. Two passes over a row: first its two means, then its numbers.
__global__ void layer_norm_backward(int rows, int width, const float* weight, const float* z,
                                    const float* inverse_std, const float* dy, float* dx,
                                    bool accumulate) {
    const GridRange mine = column_range(width);
    const std::size_t first = mine.first, last = mine.last, step = mine.step;
    for (std::size_t row : row_range(rows)) {
        const float* gradient = dy + row * width;
        const float* normalised = z + row * width;
        float sum = 0.0f, product = 0.0f;  // of g and of g z
#pragma omp simd reduction(+ : sum, product)
        for (std::size_t c = first; c < last; c += step) {
            const float g = weight[c] * gradient[c];
            sum += g;
            product += g * normalised[c];
        }
        const float mean_g = sum_over_block(sum) / width, s = inverse_std[row];
        const float mean_gz = sum_over_block(product) / width;
        float* to = dx + row * width;
#pragma omp simd
        for (std::size_t c = first; c < last; c += step) {
            const float value = s * (weight[c] * gradient[c] - mean_g - normalised[c] * mean_gz);
            to[c] = accumulate ? to[c] + value : value;
        }
    }
}

}  // namespace

LayerNorm::LayerNorm(std::string name, Device& device, int width)
    : Module(std::move(name)),
      weight(std::make_shared<Parameter>(this->name() + ".weight", constant(device, {width}, 1))),
      bias(std::make_shared<Parameter>(this->name() + ".bias", constant(device, {width}, 0))) {}

Variable LayerNorm::forward(Variable input) {
    const Tensor x = input.value(), w = weight->value;  // [rows, width] and [width]
    const int width = w.dim(0);
    if (x.shape().size() != 2 || x.dim(1) != width)
        throw std::invalid_argument(name() + " takes [rows, " + std::to_string(width) + "], not " +
                                    to_string(x.shape()));
    const int rows = x.dim(0);
    Device& device = x.device();
    const Tensor y(device, x.shape()), z(device, x.shape()), inverse_std(device, {rows});
    launch(device.stream(), rows_for(rows, width), layer_norm_forward, rows, width, eps, x.data(),
           w.data(), bias->value.data(), y.data(), z.data(), inverse_std.data());
    // The order is that of Linear: bias, input, weight.
    Tape& tape = *input.tape;
    return tape.record(
        "layer_norm", y, {tape.parameter(bias), input, tape.parameter(weight)},
        [=](const Tensor& dy, Tape::InputGradients& inputs) {
            if (inputs.is_wanted(0)) {  // dbias: dy, summed over the rows
                const GradientTarget db = inputs.target(0);
                sum_rows(dy.device(), matrix(dy), db.tensor.data(), db.accumulate);
            }
            if (inputs.is_wanted(2)) {  // dweight: the same of dy z
                const GradientTarget dw = inputs.target(2);
                sum_rows(dy.device(), matrix(dy), dw.tensor.data(), dw.accumulate, z.data());
            }
            if (inputs.is_wanted(1)) {
                const GradientTarget dx = inputs.target(1);
                launch(dy.device().stream(), rows_for(rows, width), layer_norm_backward, rows,
                       width, w.data(), z.data(), inverse_std.data(), dy.data(), dx.tensor.data(),
                       dx.accumulate);
            }
        });
}

}  // namespace ddp
