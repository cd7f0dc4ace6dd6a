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
#include "18_transformer/layer_norm.hpp"

#include <stdexcept>

#include "03_network/layers/initialisers.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// Computes y, and keeps z and s for backward. One thread takes a whole row.
__global__ void layer_norm_forward(int rows, int width, float eps, const float* x,
                                   const float* weight, const float* bias, float* y, float* z,
                                   float* inverse_std) {
    for (std::size_t row : grid_range(rows)) {
        const float* from = x + row * width;
        // Mean and variance, one after the other: the mean of squares minus the square of the mean
        // would be lost in rounding where the mean is large.
        float sum = 0.0f, squares = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (int c = 0; c < width; c++)
            sum += from[c];
        const float mean = sum / width;
#pragma omp simd reduction(+ : squares)
        for (int c = 0; c < width; c++)
            squares += (from[c] - mean) * (from[c] - mean);
        const float s = 1.0f / sqrtf(squares / width + eps);
        float* normalised = z + row * width;
        float* to = y + row * width;
#pragma omp simd
        for (int c = 0; c < width; c++) {
            normalised[c] = (from[c] - mean) * s;
            to[c] = normalised[c] * weight[c] + bias[c];
        }
        inverse_std[row] = s;
    }
}

// Writes or adds dx. Two passes over a row: first its two means, then its numbers.
__global__ void layer_norm_backward(int rows, int width, const float* weight, const float* z,
                                    const float* inverse_std, const float* dy, float* dx,
                                    bool accumulate) {
    for (std::size_t row : grid_range(rows)) {
        const float* gradient = dy + row * width;
        const float* normalised = z + row * width;
        float sum = 0.0f, product = 0.0f;
#pragma omp simd reduction(+ : sum, product)
        for (int c = 0; c < width; c++) {
            const float g = weight[c] * gradient[c];
            sum += g;
            product += g * normalised[c];
        }
        const float mean_g = sum / width, mean_gz = product / width, s = inverse_std[row];
        float* to = dx + row * width;
#pragma omp simd
        for (int c = 0; c < width; c++) {
            const float value = s * (weight[c] * gradient[c] - mean_g - normalised[c] * mean_gz);
            to[c] = accumulate ? to[c] + value : value;
        }
    }
}

// Writes or adds the sums over the rows of dy z (z is null: of dy). Each thread owns some columns
// and walks down the rows.
__global__ void sum_columns(int rows, int width, const float* __restrict__ dy,
                            const float* __restrict__ z, float* __restrict__ sums,
                            bool accumulate) {
    const GridRange mine = grid_range(width);
    if (!accumulate)
        for (std::size_t c : mine)
            sums[c] = 0.0f;
    for (int row = 0; row < rows; row++) {
        const std::size_t first = static_cast<std::size_t>(row) * width;
        for (std::size_t c : mine)
            sums[c] += z == nullptr ? dy[first + c] : dy[first + c] * z[first + c];
    }
}

}  // namespace

LayerNorm::LayerNorm(std::string name, Device& device, int width)
    : Module(std::move(name)),
      weight(std::make_shared<Parameter>(this->name() + ".weight", constant(device, {width}, 1))),
      bias(std::make_shared<Parameter>(this->name() + ".bias", constant(device, {width}, 0))) {}

Variable LayerNorm::forward(Variable input) {
    const Tensor x = input.value(), w = weight->value;
    const int width = w.dim(0);
    if (x.shape().size() != 2 || x.dim(1) != width)
        throw std::invalid_argument(name() + " takes [rows, " + std::to_string(width) + "], not " +
                                    text_of(x.shape()));
    const int rows = x.dim(0);
    Device& device = x.device();
    const Tensor y(device, x.shape()), z(device, x.shape()), inverse_std(device, {rows});
    launch(device.stream(), grid_for(rows), layer_norm_forward, rows, width, eps, x.data(),
           w.data(), bias->value.data(), y.data(), z.data(), inverse_std.data());
    // The order is that of Linear: bias, input, weight.
    Tape& tape = *input.tape;
    return tape.record("layer_norm", y, {tape.parameter(bias), input, tape.parameter(weight)},
                       [=](const Tensor& dy, Tape::InputGradients& inputs) {
                           Stream& stream = dy.device().stream();
                           if (inputs.is_wanted(0)) {
                               const GradientTarget db = inputs.target(0);
                               launch(stream, grid_for(width), sum_columns, rows, width, dy.data(),
                                      nullptr, db.tensor.data(), db.accumulate);
                           }
                           if (inputs.is_wanted(2)) {
                               const GradientTarget dw = inputs.target(2);
                               launch(stream, grid_for(width), sum_columns, rows, width, dy.data(),
                                      z.data(), dw.tensor.data(), dw.accumulate);
                           }
                           if (inputs.is_wanted(1)) {
                               const GradientTarget dx = inputs.target(1);
                               launch(stream, grid_for(rows), layer_norm_backward, rows, width,
                                      w.data(), z.data(), inverse_std.data(), dy.data(),
                                      dx.tensor.data(), dx.accumulate);
                           }
                       });
}

}  // namespace ddp
