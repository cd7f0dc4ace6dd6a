// Batch normalisation, for one channel with m values, s = 1 / sqrt(variance + eps):
//
//     forward    z = (x - mean) s,  y = weight z + bias
//     backward   dbias = sum of dy,  dweight = sum of dy z
//                dx = weight s (dy - mean of dy - z * mean of dy z)      in training
//                dx = weight s dy                                        in evaluation
//
// Every sum is taken in two steps: first over each plane (one channel of one picture), which lies
// side by side in memory, and then over the planes of a channel.
#include "03_network/layers/batch_norm2d.hpp"

#include <stdexcept>

#include "02_kernels/support/block_sum.cuh"
#include "03_network/layers/batch_norm_steps.hpp"
#include "03_network/layers/initialisers.hpp"
#include "common/gpu/gpu.hpp"
#include "common/gpu/rows.hpp"

namespace ddp {
namespace {

struct NormSizes {
    int batch, channels, plane;  // a plane is one channel of one picture

    __host__ __device__ std::size_t planes() const {
        return static_cast<std::size_t>(batch) * channels;
    }
    // Returns the number of values of one channel.
    __host__ __device__ float count() const { return static_cast<float>(batch) * plane; }
};

NormSizes norm_sizes(const Tensor& x) {
    return {x.dim(0), x.dim(1), x.dim(2) * x.dim(3)};
}

// Computes the mean of each plane, and the sum of squared distances from it. (The mean of squares
// minus the square of the mean would be lost in rounding where the mean is much larger than the
// deviation.) A block takes whole planes.
__global__ void plane_moments(NormSizes s, const float* x, float* means, float* squares) {
    for (std::size_t plane : row_range(s.planes())) {
        const float* values = x + plane * s.plane;
        const float sum = sum_by_block<float>(s.plane, [=](std::size_t i) { return values[i]; });
        const float mean = sum / s.plane;
        const float square = sum_by_block<float>(
            s.plane, [=](std::size_t i) { return (values[i] - mean) * (values[i] - mean); });
        if (threadIdx.x == 0) {
            means[plane] = mean;
            squares[plane] = square;
        }
    }
}

// Merges the planes of each channel: the channel's squared distances are those within the planes,
// and those of the planes' means from the common mean. Updates the running averages.
__global__ void channel_moments(NormSizes s, float eps, float momentum, const float* means,
                                const float* squares, float* mean, float* inverse_std,
                                float* running_mean, float* running_var) {
    for (std::size_t channel : grid_range(s.channels)) {
        float sum = 0.0f;
        for (std::size_t plane = channel; plane < s.planes(); plane += s.channels)
            sum += means[plane];
        const float m = sum / s.batch;
        float square = 0.0f;
        for (std::size_t plane = channel; plane < s.planes(); plane += s.channels)
            square += squares[plane] + s.plane * (means[plane] - m) * (means[plane] - m);
        mean[channel] = m;
        inverse_std[channel] = 1.0f / sqrtf(square / s.count() + eps);
        // The batch is normalised by its own variance. The running variance estimates that of all
        // data, and so divides by one less.
        const float variance = square / (s.count() - 1.0f);
        running_mean[channel] = (1.0f - momentum) * running_mean[channel] + momentum * m;
        running_var[channel] = (1.0f - momentum) * running_var[channel] + momentum * variance;
    }
}

// Computes 1 / sqrt(running_var + eps) for each channel.
__global__ void invert_running_std(int channels, float eps, const float* running_var,
                                   float* inverse_std) {
    for (std::size_t channel : grid_range(channels))
        inverse_std[channel] = 1.0f / sqrtf(running_var[channel] + eps);
}

// Computes y = (x - mean) * inverse_std * weight + bias. A block takes whole planes.
__global__ void normalise_channels(NormSizes s, const float* x, const float* mean,
                                   const float* inverse_std, const float* weight, const float* bias,
                                   float* y) {
    for (std::size_t plane : row_range(s.planes())) {
        const std::size_t channel = plane % s.channels;
        const float m = mean[channel], b = bias[channel];
        const float scale = weight[channel] * inverse_std[channel];
        const float* from = x + plane * s.plane;
        float* to = y + plane * s.plane;
        for (std::size_t i : column_range(s.plane))
            to[i] = (from[i] - m) * scale + b;
    }
}

// Adds up dy, and dy * normalised x, over each plane. A block takes whole planes.
__global__ void plane_sums(NormSizes s, const float* x, const float* mean, const float* inverse_std,
                           const float* dy, float* dy_sums, float* product_sums) {
    const GridRange mine = column_range(s.plane);
    const std::size_t first = mine.first, last = mine.last, step = mine.step;
    for (std::size_t plane : row_range(s.planes())) {
        const float m = mean[plane % s.channels];
        const float* values = x + plane * s.plane;
        const float* gradients = dy + plane * s.plane;
        float sum = 0.0f, product = 0.0f;
#pragma omp simd reduction(+ : sum, product)
        for (std::size_t i = first; i < last; i += step) {
            sum += gradients[i];
            product += gradients[i] * (values[i] - m);
        }
        sum = sum_over_block(sum);
        product = sum_over_block(product);
        if (threadIdx.x == 0) {
            dy_sums[plane] = sum;
            product_sums[plane] = product * inverse_std[plane % s.channels];
        }
    }
}

// Adds up the planes' sums over each channel.
__global__ void channel_sums(NormSizes s, const float* dy_sums, const float* product_sums,
                             float* dy_sum, float* product_sum) {
    for (std::size_t channel : grid_range(s.channels)) {
        float sum = 0.0f, product = 0.0f;
        for (std::size_t plane = channel; plane < s.planes(); plane += s.channels) {
            sum += dy_sums[plane];
            product += product_sums[plane];
        }
        dy_sum[channel] = sum;
        product_sum[channel] = product;
    }
}

// Copies `sums` to `gradient`, or adds them.
__global__ void pass_on(int channels, const float* sums, float* gradient, bool accumulate) {
    for (std::size_t channel : grid_range(channels))
        gradient[channel] = accumulate ? gradient[channel] + sums[channel] : sums[channel];
}

// Computes dx. In training `share` is 1 / count: every x also moves the mean and the variance of
// the batch, and the two further terms account for that. In evaluation `share` is 0.
__global__ void normalise_backward(NormSizes s, float share, const float* x, const float* mean,
                                   const float* inverse_std, const float* weight,
                                   const float* dy_sum, const float* product_sum, const float* dy,
                                   float* dx, bool accumulate) {
    for (std::size_t plane : row_range(s.planes())) {
        const std::size_t channel = plane % s.channels;
        const float m = mean[channel];
        const float scale = weight[channel] * inverse_std[channel];
        const float shift = share * dy_sum[channel];
        const float slope = share * product_sum[channel] * inverse_std[channel];
        const float* values = x + plane * s.plane;
        const float* from = dy + plane * s.plane;
        float* to = dx + plane * s.plane;
        for (std::size_t i : column_range(s.plane)) {
            const float value = scale * (from[i] - shift - (values[i] - m) * slope);
            to[i] = accumulate ? to[i] + value : value;
        }
    }
}

// Computes the moments of the batch and updates the running averages.
Moments batch_moments(const NormSizes& s, const Tensor& x, const Tensor& running_mean,
                      const Tensor& running_var) {
    Device& device = x.device();
    const PlaneMoments planes = moments_of_planes(x);
    const Moments moments{Tensor(device, {s.channels}), Tensor(device, {s.channels})};
    launch(device.stream(), grid_for(s.channels), channel_moments, s, BatchNorm2d::eps,
           BatchNorm2d::momentum, planes.means.data(), planes.squares.data(), moments.mean.data(),
           moments.inverse_std.data(), running_mean.data(), running_var.data());
    return moments;
}

// Copies the running averages. Backward needs those of this forward, even if a training step in
// between has updated the originals.
Moments running_moments(const Tensor& running_mean, const Tensor& running_var) {
    Device& device = running_mean.device();
    const int channels = running_mean.dim(0);
    const Moments moments{Tensor(device, {channels}), Tensor(device, {channels})};
    launch(device.stream(), grid_for(channels), pass_on, channels, running_mean.data(),
           moments.mean.data(), false);
    launch(device.stream(), grid_for(channels), invert_running_std, channels, BatchNorm2d::eps,
           running_var.data(), moments.inverse_std.data());
    return moments;
}

}  // namespace

// ---- Steps

PlaneMoments moments_of_planes(const Tensor& x) {
    Device& device = x.device();
    const NormSizes s = norm_sizes(x);
    PlaneMoments planes{Tensor(device, {s.batch, s.channels}),
                        Tensor(device, {s.batch, s.channels})};
    launch(device.stream(), rows_for(s.planes(), s.plane), plane_moments, s, x.data(),
           planes.means.data(), planes.squares.data());
    return planes;
}

Tensor normalised(const Tensor& x, const Moments& moments, const Tensor& weight,
                  const Tensor& bias) {
    const NormSizes s = norm_sizes(x);
    Tensor y(x.device(), x.shape());
    launch(x.device().stream(), rows_for(s.planes(), s.plane), normalise_channels, s, x.data(),
           moments.mean.data(), moments.inverse_std.data(), weight.data(), bias.data(), y.data());
    return y;
}

GradientSums sums_of_gradients(const Tensor& x, const Moments& moments, const Tensor& dy) {
    Device& device = dy.device();
    const NormSizes s = norm_sizes(x);
    const Tensor dy_sums(device, {s.batch, s.channels}), product_sums(device, dy_sums.shape());
    launch(device.stream(), rows_for(s.planes(), s.plane), plane_sums, s, x.data(),
           moments.mean.data(), moments.inverse_std.data(), dy.data(), dy_sums.data(),
           product_sums.data());
    GradientSums sums{Tensor(device, {s.channels}), Tensor(device, {s.channels})};
    launch(device.stream(), grid_for(s.channels), channel_sums, s, dy_sums.data(),
           product_sums.data(), sums.dy.data(), sums.product.data());
    return sums;
}

void give_parameter_gradients(const GradientSums& sums, Tape::InputGradients& gradients) {
    const Tensor* of_parameter[] = {&sums.product, &sums.dy};  // dL/dweight, dL/dbias
    const int channels = sums.dy.dim(0);
    for (std::size_t parameter : {0, 1}) {
        if (!gradients.is_wanted(1 + parameter))
            continue;
        const GradientTarget target = gradients.target(1 + parameter);
        launch(sums.dy.device().stream(), grid_for(channels), pass_on, channels,
               of_parameter[parameter]->data(), target.tensor.data(), target.accumulate);
    }
}

void give_input_gradient(const Tensor& x, const Moments& moments, const Tensor& weight,
                         const GradientSums& sums, float share, const Tensor& dy,
                         Tape::InputGradients& gradients) {
    const NormSizes s = norm_sizes(x);
    const GradientTarget dx = gradients.target(0);
    launch(dy.device().stream(), rows_for(s.planes(), s.plane), normalise_backward, s, share,
           x.data(), moments.mean.data(), moments.inverse_std.data(), weight.data(), sums.dy.data(),
           sums.product.data(), dy.data(), dx.tensor.data(), dx.accumulate);
}

// ---- The layer

namespace {

void backward(const NormSizes& s, bool is_training, const Tensor& x, const Tensor& weight,
              const Moments& moments, const Tensor& dy, Tape::InputGradients& gradients) {
    const GradientSums sums = sums_of_gradients(x, moments, dy);
    give_parameter_gradients(sums, gradients);
    if (gradients.is_wanted(0))
        give_input_gradient(x, moments, weight, sums, is_training ? 1.0f / s.count() : 0.0f, dy,
                            gradients);
}

std::shared_ptr<Parameter> make_constant(const std::string& name, Device& device, int channels,
                                         float value) {
    return std::make_shared<Parameter>(name, constant(device, {channels}, value));
}

}  // namespace

BatchNorm2d::BatchNorm2d(std::string name, Device& device, int channels)
    : Module(std::move(name)),
      weight(make_constant(this->name() + ".weight", device, channels, 1.0f)),
      bias(make_constant(this->name() + ".bias", device, channels, 0.0f)),
      running_mean(constant(device, {channels}, 0.0f)),
      running_var(constant(device, {channels}, 1.0f)) {}

std::vector<NamedTensor> BatchNorm2d::buffers() const {
    return {{name() + ".running_mean", running_mean}, {name() + ".running_var", running_var}};
}

void BatchNorm2d::require_shape(const Tensor& x) const {
    const int channels = running_mean.dim(0);
    if (x.shape().size() != 4 || x.dim(1) != channels)
        throw std::invalid_argument(name() + " takes [batch, " + std::to_string(channels) +
                                    ", height, width], not " + to_string(x.shape()));
}

Variable BatchNorm2d::forward(Variable input) {
    const Tensor x = input.value();
    require_shape(x);
    const NormSizes s = norm_sizes(x);
    if (is_training() && s.batch * s.plane < 2)
        throw std::invalid_argument(name() + " cannot train on " + to_string(x.shape()) +
                                    ": the variance of one value a channel is not known; give it "
                                    "a larger batch");
    const Moments moments = is_training() ? batch_moments(s, x, running_mean, running_var)
                                          : running_moments(running_mean, running_var);
    const Tensor w = weight->value;
    return input.tape->record(
        "batch_norm2d", normalised(x, moments, w, bias->value),
        {input, input.tape->parameter(weight), input.tape->parameter(bias)},
        [=, training = is_training()](const Tensor& dy, Tape::InputGradients& gradients) {
            backward(s, training, x, w, moments, dy, gradients);
        });
}

}  // namespace ddp
