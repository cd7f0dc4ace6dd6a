#include "03_network/layers/conv2d.hpp"

#include <algorithm>
#include <stdexcept>

#include "03_network/layers/initialisers.hpp"
#include "03_network/layers/matrix.hpp"
#include "common/gpu/gpu.hpp"
#include "common/gpu/rows.hpp"

namespace ddp {
namespace {

// All sizes of one convolution. A group is the samples that are computed together.
struct ConvSizes {
    int batch, group;
    int channels, height, width;
    int out_channels, out_height, out_width;
    int kernel, stride, padding;

    __host__ __device__ int window() const { return channels * kernel * kernel; }
    __host__ __device__ int in_plane() const { return height * width; }
    __host__ __device__ int out_plane() const { return out_height * out_width; }
    __host__ __device__ bool keeps_size() const { return stride == 1 && out_width == width; }
};

// Row (c, ky, kx) of the matrix of columns, for one sample: which input pixel does each output
// pixel see there? Output (oy, ox) sees (oy * stride + top, ox * stride + left), if that is in the
// picture.
struct View {
    int top, left;
    int first_x, last_x;  // the ox from first_x up to last_x see columns of the picture

    __device__ View(const ConvSizes& s, int k) {
        top = k / s.kernel % s.kernel - s.padding;
        left = k % s.kernel - s.padding;
        first_x = left < 0 ? std::min((-left + s.stride - 1) / s.stride, s.out_width) : 0;
        last_x = std::clamp((s.width - left + s.stride - 1) / s.stride, first_x, s.out_width);
    }
};

// Zero where the view leaves the picture at the left or the right.
__device__ inline void clear_sides(const ConvSizes& s, const View& view, float* row) {
    for (std::size_t oy : column_range(s.out_height)) {
        for (int ox = 0; ox < view.first_x; ox++)
            row[oy * s.out_width + ox] = 0.0f;
        for (int ox = view.last_x; ox < s.out_width; ox++)
            row[oy * s.out_width + ox] = 0.0f;
    }
}

// Where the output is as large as the input, a view is the picture moved by `shift` places: one
// long copy, or one long addition, does for all its lines. These are the places of the output that
// then see a place of the picture; a line's end that sees the next line's begin is among them.
struct Shifted {
    int shift, first, last;

    __device__ Shifted(const ConvSizes& s, const View& view) {
        shift = view.top * s.width + view.left;
        first = std::clamp(-shift, 0, s.in_plane());
        last = std::clamp(s.in_plane() - shift, first, s.in_plane());
    }
};

__device__ inline void copy_shifted(const ConvSizes& s, const View& view, const float* plane,
                                    float* row) {
    const Shifted part(s, view);
    for (std::size_t i : column_range(part.first))
        row[i] = 0.0f;
    for (std::size_t i : column_range(part.last - part.first))
        row[part.first + i] = plane[part.first + part.shift + i];
    for (std::size_t i : column_range(s.out_plane() - part.last))
        row[part.last + i] = 0.0f;
    __syncthreads();
    clear_sides(s, view, row);
}

__device__ inline void copy_by_lines(const ConvSizes& s, const View& view, const float* plane,
                                     float* row) {
    const GridRange mine = column_range(s.out_width);
    for (int oy = 0; oy < s.out_height; oy++) {
        const int y = oy * s.stride + view.top;
        const float* line = plane + y * s.width + view.left;
        for (std::size_t ox : mine) {
            const int x = static_cast<int>(ox);
            const bool exists = y >= 0 && y < s.height && x >= view.first_x && x < view.last_x;
            row[oy * s.out_width + x] = exists ? line[x * s.stride] : 0.0f;
        }
    }
}

// columns [window, samples * out_plane] of `samples` pictures x.
__global__ void pictures_to_columns(ConvSizes s, int samples, const float* x, float* columns) {
    for (std::size_t row : row_range(static_cast<std::size_t>(s.window()) * samples)) {
        const int k = static_cast<int>(row / samples), sample = static_cast<int>(row % samples);
        const int c = k / (s.kernel * s.kernel);
        const float* plane = x + static_cast<std::size_t>(sample * s.channels + c) * s.in_plane();
        const View view(s, k);
        if (s.keeps_size())
            copy_shifted(s, view, plane, columns + row * s.out_plane());
        else
            copy_by_lines(s, view, plane, columns + row * s.out_plane());
    }
}

__device__ inline void add_shifted(const ConvSizes& s, const View& view, float* row, float* plane) {
    clear_sides(s, view, row);
    __syncthreads();
    const Shifted part(s, view);
    for (std::size_t i : column_range(part.last - part.first))
        plane[part.first + part.shift + i] += row[part.first + i];
}

__device__ inline void add_by_lines(const ConvSizes& s, const View& view, const float* row,
                                    float* plane) {
    const GridRange mine = column_range(view.last_x - view.first_x);
    for (int oy = 0; oy < s.out_height; oy++) {
        const int y = oy * s.stride + view.top;
        if (y < 0 || y >= s.height)
            continue;
        float* line = plane + y * s.width + view.left;
        for (std::size_t i : mine) {
            const std::size_t x = view.first_x + i;
            line[x * s.stride] += row[oy * s.out_width + x];
        }
    }
}

// The way back: every input pixel gets the sum over the windows that it was in. The block adds one
// view after the other: within one, no two outputs see the same input. The columns are used up.
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
            if (s.keeps_size())
                add_shifted(s, View(s, k), from, plane);
            else
                add_by_lines(s, View(s, k), from, plane);
        }
        __syncthreads();
    }
}

// The product has the channels outside and the samples inside; the batch has it the other way
// round. Adds the bias on the way.
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

__global__ void batch_to_product(ConvSizes s, int samples, const float* dy, float* product) {
    for (std::size_t row : row_range(static_cast<std::size_t>(samples) * s.out_channels)) {
        const std::size_t sample = row / s.out_channels, channel = row % s.out_channels;
        const float* from = dy + row * s.out_plane();
        float* to = product + (channel * samples + sample) * s.out_plane();
        for (std::size_t i : column_range(s.out_plane()))
            to[i] = from[i];
    }
}

// One thread a plane (sample, channel): its sum.
__global__ void sum_planes(std::size_t planes, int size, const float* dy, float* sums) {
    for (std::size_t plane : grid_range(planes)) {
        const float* values = dy + plane * size;
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < size; i++)
            sum += values[i];
        sums[plane] = sum;
    }
}

// db[channel] (+)= the sum of its planes over the batch.
__global__ void sum_over_samples(int batch, int channels, const float* sums, float* db,
                                 bool accumulate) {
    for (std::size_t channel : grid_range(channels)) {
        float sum = accumulate ? db[channel] : 0.0f;
        for (int sample = 0; sample < batch; sample++)
            sum += sums[static_cast<std::size_t>(sample) * channels + channel];
        db[channel] = sum;
    }
}

ConvSizes conv_sizes(const std::string& name, const Conv2dShape& shape, const Tensor& x) {
    if (x.shape().size() != 4 || x.dim(1) != shape.in_channels)
        throw std::invalid_argument(name + " takes [batch, " + std::to_string(shape.in_channels) +
                                    ", height, width], not " + text_of(x.shape()));
    ConvSizes s{};
    s.batch = x.dim(0), s.channels = x.dim(1), s.height = x.dim(2), s.width = x.dim(3);
    s.kernel = shape.kernel, s.stride = shape.stride, s.padding = shape.padding;
    s.out_channels = shape.out_channels;
    if (std::min(s.height, s.width) + 2 * s.padding < s.kernel)
        throw std::invalid_argument(name + " has a window of " + std::to_string(s.kernel) +
                                    " pixels, more than the picture of " + text_of(x.shape()) +
                                    " with its padding");
    s.out_height = (s.height + 2 * s.padding - s.kernel) / s.stride + 1;
    s.out_width = (s.width + 2 * s.padding - s.kernel) / s.stride + 1;
    const std::size_t bytes_a_sample = sizeof(float) * s.out_plane() * s.window();
    s.group = static_cast<int>(std::clamp<std::size_t>(columns_bytes / bytes_a_sample, 1,
                                                       static_cast<std::size_t>(s.batch)));
    return s;
}

// One group of samples at a time: `first` is its first sample, `samples` their number.
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
    launch(device.stream(), grid_for(sums.size()), sum_planes, sums.size(), s.out_plane(),
           dy.data(), sums.data());
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
