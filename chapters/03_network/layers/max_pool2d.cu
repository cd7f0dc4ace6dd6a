#include "03_network/layers/without_parameters.hpp"

#include <algorithm>
#include <stdexcept>

#include "common/gpu/gpu.hpp"
#include "common/gpu/rows.hpp"

namespace ddp {
namespace {

struct PoolSizes {
    int planes;  // batch * channels
    int height, width;
    int out_height, out_width;
    int kernel, stride;
};

// Returns the place of the largest value in the window at `corner`; among equal ones the first.
__device__ __forceinline__ int largest_in_window(const float* in, int corner, int width,
                                                 int kernel) {
    int best = corner;
    float largest = in[corner];
    for (int ky = 0; ky < kernel; ky++)
        for (int kx = 0; kx < kernel; kx++) {
            const int place = corner + ky * width + kx;
            const float value = in[place];
            // A NaN wins and stays, so that the loss shows it.
            const bool wins = (value > largest) | (value != value);
            best = wins ? place : best;
            largest = wins ? value : largest;
        }
    return best;
}

// Writes y, and for each of its elements the place in the input plane that it came from.
__global__ void pool_forward(PoolSizes s, const float* __restrict__ x, float* __restrict__ y,
                             int* __restrict__ places) {
    for (std::size_t row : row_range(static_cast<std::size_t>(s.planes) * s.out_height)) {
        const float* in = x + row / s.out_height * s.height * s.width;
        const int top = static_cast<int>(row % s.out_height) * s.stride * s.width;
        for (std::size_t ox : column_range(s.out_width)) {
            const int corner = top + static_cast<int>(ox) * s.stride;
            // The usual kernel is a constant here, so that the compiler unrolls its loops.
            const int best = s.kernel == 2 ? largest_in_window(in, corner, s.width, 2)
                                           : largest_in_window(in, corner, s.width, s.kernel);
            y[row * s.out_width + ox] = in[best];
            places[row * s.out_width + ox] = best;
        }
    }
}

// Adds every element of dy to the place that its output came from. Overlapping windows may have the
// same pixel as their largest; windows that are `apart` rows or columns from each other never
// overlap. So the block adds one group of such windows after the other.
__global__ void pool_backward(PoolSizes s, const int* places, const float* dy, float* dx,
                              bool accumulate) {
    const int apart = (s.kernel + s.stride - 1) / s.stride;
    for (std::size_t plane : row_range(s.planes)) {
        float* to = dx + plane * s.height * s.width;
        const std::size_t out_plane = plane * s.out_height * s.out_width;
        if (!accumulate)
            for (std::size_t i : column_range(static_cast<std::size_t>(s.height) * s.width))
                to[i] = 0.0f;
        for (int group = 0; group < apart * apart; group++) {
            __syncthreads();
            const int left = group % apart;
            const int count = std::max(0, (s.out_width - left + apart - 1) / apart);
            const GridRange mine = column_range(count);
            for (int oy = group / apart; oy < s.out_height; oy += apart)
                for (std::size_t i : mine) {
                    const std::size_t from = out_plane + oy * s.out_width + left + i * apart;
                    to[places[from]] += dy[from];
                }
        }
        __syncthreads();
    }
}

PoolSizes window_sizes(const std::string& name, const Tensor& x, int kernel, int stride) {
    if (x.shape().size() != 4 || x.dim(2) < kernel || x.dim(3) < kernel)
        throw std::invalid_argument(name +
                                    " takes [batch, channels, height, width] with pictures "
                                    "of at least " +
                                    std::to_string(kernel) + " x " + std::to_string(kernel) +
                                    " pixels, not " + to_string(x.shape()));
    return {x.dim(0) * x.dim(1),
            x.dim(2),
            x.dim(3),
            (x.dim(2) - kernel) / stride + 1,
            (x.dim(3) - kernel) / stride + 1,
            kernel,
            stride};
}

}  // namespace

MaxPool2d::MaxPool2d(std::string name, int kernel, int stride)
    : Module(std::move(name)), kernel_(kernel), stride_(stride) {}

Variable MaxPool2d::forward(Variable input) {
    const Tensor& x = input.value();
    const PoolSizes s = window_sizes(name(), x, kernel_, stride_);
    Device& device = x.device();
    const Tensor y(device, {x.dim(0), x.dim(1), s.out_height, s.out_width});
    const BasicTensor<int> places(device, y.shape());
    launch(device.stream(),
           rows_for(static_cast<std::size_t>(s.planes) * s.out_height, s.out_width), pool_forward,
           s, x.data(), y.data(), places.data());
    return input.tape->record(
        "max_pool2d", y, {input}, [s, places](const Tensor& dy, Tape::InputGradients& inputs) {
            if (!inputs.is_wanted(0))
                return;
            const GradientTarget dx = inputs.target(0);
            launch(dy.device().stream(), rows_for(s.planes, s.out_width), pool_backward, s,
                   places.data(), dy.data(), dx.tensor.data(), dx.accumulate);
        });
}

}  // namespace ddp
