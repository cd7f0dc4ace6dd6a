// Convolution as a product of matrices. For a group of samples:
//
//     forward    columns = im2col(x)               [window, samples * out_plane]
//                y = W columns + b                 [out_channels, samples * out_plane]
//     backward   db = the sum of dy over batch and pixels
//                dW = dy columns^T                 [out_channels, window]
//                d columns = W^T dy,  dx = the sum over the windows that a pixel is in
//
// window = in_channels * kernel^2, out_plane = out_height * out_width. columns.cuh knows which
// pixel goes where.
#include "03_network/layers/conv2d.hpp"

#include <algorithm>
#include <stdexcept>

#include "02_kernels/support/block_sum.cuh"
#include "03_network/layers/columns.cuh"
#include "03_network/layers/initialisers.hpp"
#include "03_network/layers/matrix.hpp"
#include "common/gpu/gpu.hpp"
#include "common/gpu/rows.hpp"

namespace ddp {
namespace {

// Writes the matrix columns [window, samples * out_plane] of `samples` pictures x. A block writes a
// row of one sample: what one weight of the window sees of that picture.
__global__ void pictures_to_columns(ConvSizes s, int samples, const float* x, float* columns) {
    for (std::size_t row : row_range(static_cast<std::size_t>(s.window()) * samples)) {
        const int k = static_cast<int>(row / samples), sample = static_cast<int>(row % samples);
        const int c = k / (s.kernel * s.kernel);
        const float* plane = x + static_cast<std::size_t>(sample * s.channels + c) * s.in_plane();
        copy_view(s, WindowView(s, k), plane, columns + row * s.out_plane());
    }
}

// Writes or adds to dx, for every input pixel, the sum over the windows that it is in. A block
// takes one plane and adds one view after the other. `columns` is used up: its contents are
// overwritten.
__global__ void columns_to_pictures(ConvSizes s, int samples, float* columns, float* dx,
                                    bool accumulate) {
    for (std::size_t row : row_range(static_cast<std::size_t>(samples) * s.channels)) {
        const std::size_t sample = row / s.channels, c = row % s.channels;
        float* plane = dx + row * s.in_plane();
        if (!accumulate)
            for (std::size_t i : column_range(s.in_plane()))
                plane[i] = 0.0f;
        for (int k = 0; k < s.kernel * s.kernel; k++) {
            __syncthreads();
            const std::size_t column = c * s.kernel * s.kernel + k;
            float* from = columns + (column * samples + sample) * s.out_plane();
            add_view(s, WindowView(s, k), from, plane);
        }
        __syncthreads();
    }
}

// Copies the product [out_channels, samples, out_plane] to y [samples, out_channels, out_plane] and
// adds the bias.
__global__ void product_to_batch(ConvSizes s, int samples, const float* product, const float* bias,
                                 float* y) {
    for (std::size_t row : row_range(static_cast<std::size_t>(samples) * s.out_channels)) {
        const std::size_t sample = row / s.out_channels, channel = row % s.out_channels;
        const float* from = product + (channel * samples + sample) * s.out_plane();
        float* to = y + row * s.out_plane();
        const float b = bias[channel];
        for (std::size_t i : column_range(s.out_plane()))
            to[i] = from[i] + b;
    }
}

// Copies dy [samples, out_channels, out_plane] to product [out_channels, samples, out_plane].
__global__ void batch_to_product(ConvSizes s, int samples, const float* dy, float* product) {
    for (std::size_t row : row_range(static_cast<std::size_t>(samples) * s.out_channels)) {
        const std::size_t sample = row / s.out_channels, channel = row % s.out_channels;
        const float* from = dy + row * s.out_plane();
        float* to = product + (channel * samples + sample) * s.out_plane();
        for (std::size_t i : column_range(s.out_plane()))
            to[i] = from[i];
    }
}

// Adds up each plane (sample, channel) of dy. A block takes whole planes.
__global__ void sum_planes(std::size_t planes, int size, const float* dy, float* sums) {
    const GridRange mine = column_range(size);
    const std::size_t first = mine.first, last = mine.last, step = mine.step;
    for (std::size_t plane : row_range(planes)) {
        const float* values = dy + plane * size;
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (std::size_t i = first; i < last; i += step)
            sum += values[i];
        sum = sum_over_block(sum);
        if (threadIdx.x == 0)
            sums[plane] = sum;
    }
}

// Writes or adds to db, for each channel, the sum of its planes over the batch.
__global__ void sum_over_samples(int batch, int channels, const float* sums, float* db,
                                 bool accumulate) {
    for (std::size_t channel : grid_range(channels)) {
        float sum = accumulate ? db[channel] : 0.0f;
        for (int sample = 0; sample < batch; sample++)
            sum += sums[static_cast<std::size_t>(sample) * channels + channel];
        db[channel] = sum;
    }
}

// Returns the sizes of a convolution of x. Throws std::invalid_argument, naming the layer, if x has
// another shape than [batch, in_channels, height, width] or is smaller than the window.
ConvSizes conv_sizes(const std::string& name, const Conv2dShape& shape, const Tensor& x) {
    if (x.shape().size() != 4 || x.dim(1) != shape.in_channels)
        throw std::invalid_argument(name + " takes [batch, " + std::to_string(shape.in_channels) +
                                    ", height, width], not " + to_string(x.shape()));
    ConvSizes s{};
    s.batch = x.dim(0), s.channels = x.dim(1), s.height = x.dim(2), s.width = x.dim(3);
    s.kernel = shape.kernel, s.stride = shape.stride, s.padding = shape.padding;
    s.out_channels = shape.out_channels;
    if (std::min(s.height, s.width) + 2 * s.padding < s.kernel)
        throw std::invalid_argument(name + " has a window of " + std::to_string(s.kernel) +
                                    " pixels, more than the picture of " + to_string(x.shape()) +
                                    " with its padding");
    s.out_height = (s.height + 2 * s.padding - s.kernel) / s.stride + 1;
    s.out_width = (s.width + 2 * s.padding - s.kernel) / s.stride + 1;
    const std::size_t bytes_a_sample = sizeof(float) * s.out_plane() * s.window();
    s.group = static_cast<int>(std::clamp<std::size_t>(columns_bytes / bytes_a_sample, 1,
                                                       static_cast<std::size_t>(s.batch)));
    return s;
}

// Calls work(first, samples) for one group of samples after the other: `first` is its first sample,
// `samples` their number.
template <class Work>
void for_each_group(const ConvSizes& s, const Work& work) {
    for (int first = 0; first < s.batch; first += s.group)
        work(first, std::min(s.group, s.batch - first));
}

void make_columns(const ConvSizes& s, int first, int samples, const Tensor& x,
                  const Tensor& columns) {
    const std::size_t sample_size = static_cast<std::size_t>(s.channels) * s.in_plane();
    launch(x.device().stream(),
           rows_for(static_cast<std::size_t>(s.window()) * samples, s.out_width),
           pictures_to_columns, s, samples, x.data() + first * sample_size, columns.data());
}

Tensor convolve(const ConvSizes& s, const Tensor& x, const Tensor& weight, const Tensor& bias) {
    Device& device = x.device();
    Tensor y(device, {s.batch, s.out_channels, s.out_height, s.out_width});
    const Tensor columns(device, {s.window(), s.group * s.out_plane()});
    const Tensor product(device, {s.out_channels, s.group * s.out_plane()});
    for_each_group(s, [&](int first, int samples) {
        make_columns(s, first, samples, x, columns);
        multiply_matrices(device, {weight.data(), s.out_channels, s.window()},
                          {columns.data(), s.window(), samples * s.out_plane()}, product.data());
        const std::size_t rows = static_cast<std::size_t>(samples) * s.out_channels;
        launch(device.stream(), rows_for(rows, s.out_plane()), product_to_batch, s, samples,
               product.data(), bias.data(),
               y.data() + static_cast<std::size_t>(first) * s.out_channels * s.out_plane());
    });
    return y;
}

void bias_gradient(const ConvSizes& s, const Tensor& dy, const GradientTarget& db) {
    Device& device = dy.device();
    const Tensor sums(device, {s.batch, s.out_channels});
    launch(device.stream(), rows_for(sums.size(), s.out_plane()), sum_planes, sums.size(),
           s.out_plane(), dy.data(), sums.data());
    launch(device.stream(), grid_for(s.out_channels), sum_over_samples, s.batch, s.out_channels,
           sums.data(), db.tensor.data(), db.accumulate);
}

void weight_and_input_gradient(const ConvSizes& s, const Tensor& x, const Tensor& weight,
                               const Tensor& dy, Tape::InputGradients& gradients) {
    Device& device = dy.device();
    const bool wants_dw = gradients.is_wanted(1), wants_dx = gradients.is_wanted(0);
    GradientTarget dw = wants_dw ? gradients.target(1) : GradientTarget{};
    const GradientTarget dx = wants_dx ? gradients.target(0) : GradientTarget{};
    const Tensor columns(device, {s.window(), s.group * s.out_plane()});
    const Tensor product(device, {s.out_channels, s.group * s.out_plane()});
    for_each_group(s, [&](int first, int samples) {
        const int pixels = samples * s.out_plane();
        const std::size_t rows = static_cast<std::size_t>(samples) * s.out_channels;
        launch(device.stream(), rows_for(rows, s.out_plane()), batch_to_product, s, samples,
               dy.data() + static_cast<std::size_t>(first) * s.out_channels * s.out_plane(),
               product.data());
        const Matrix dy_matrix{product.data(), s.out_channels, pixels};
        if (wants_dw) {  // dW += dy columns^T
            make_columns(s, first, samples, x, columns);
            multiply_matrices(device, dy_matrix, transposed({columns.data(), s.window(), pixels}),
                              dw.tensor.data(), dw.accumulate);
            dw.accumulate = true;
        }
        if (wants_dx) {  // d columns = W^T dy
            multiply_matrices(device, transposed({weight.data(), s.out_channels, s.window()}),
                              dy_matrix, columns.data());
            launch(device.stream(),
                   rows_for(static_cast<std::size_t>(samples) * s.channels, s.out_width),
                   columns_to_pictures, s, samples, columns.data(),
                   dx.tensor.data() + static_cast<std::size_t>(first) * s.channels * s.in_plane(),
                   dx.accumulate);
        }
    });
}

}  // namespace

Conv2d::Conv2d(std::string name, Device& device, Conv2dShape shape, Random& random)
    : Module(std::move(name)),
      weight(make_parameter(this->name() + ".weight", device,
                            {shape.out_channels, shape.in_channels, shape.kernel, shape.kernel},
                            shape.in_channels * shape.kernel * shape.kernel, random)),
      bias(make_parameter(this->name() + ".bias", device, {shape.out_channels},
                          shape.in_channels * shape.kernel * shape.kernel, random)),
      shape_(shape) {}

Variable Conv2d::forward(Variable input) {
    const Tensor x = input.value();
    const ConvSizes s = conv_sizes(name(), shape_, x);
    const Tensor w = weight->value;
    const Tensor y = convolve(s, x, w, bias->value);
    return input.tape->record("conv2d", y,
                              {input, input.tape->parameter(weight), input.tape->parameter(bias)},
                              [s, x, w](const Tensor& dy, Tape::InputGradients& gradients) {
                                  if (gradients.is_wanted(2))
                                      bias_gradient(s, dy, gradients.target(2));
                                  if (gradients.is_wanted(1) || gradients.is_wanted(0))
                                      weight_and_input_gradient(s, x, w, dy, gradients);
                              });
}

}  // namespace ddp
