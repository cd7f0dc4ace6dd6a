#include "16_sync_batch_norm/sync_batch_norm.hpp"

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// The planes of a channel put together, as BatchNorm2d does. `plane` is the number of values in
// one.
__global__ void tell_kernel(int batch, int channels, float plane, const float* means,
                            const float* squares, float* told) {
    const std::size_t planes = static_cast<std::size_t>(batch) * channels;
    const float count = static_cast<float>(batch) * plane;
    for (std::size_t channel : grid_range(channels)) {
        float sum = 0.0f;
        for (std::size_t i = channel; i < planes; i += channels)
            sum += means[i];
        const float mean = batch > 0 ? sum / batch : 0.0f;
        float square = 0.0f;
        for (std::size_t i = channel; i < planes; i += channels)
            square += squares[i] + plane * (means[i] - mean) * (means[i] - mean);
        told[channel] = mean;
        told[channels + channel] = batch > 0 ? square / count : 0.0f;
        if (channel == 0)
            told[2 * channels] = count;
    }
}

// The ranks of a channel put together, in the order of the ranks: all get the same bits. A rank's
// mean weighs as much as it has values; one that has none adds nothing.
__global__ void join_kernel(int ranks, int channels, float eps, float momentum, const float* told,
                            float* mean, float* inverse_std, float* share, float* running_mean,
                            float* running_var) {
    const int numbers = 2 * channels + 1;
    for (std::size_t channel : grid_range(channels)) {
        float count = 0.0f, sum = 0.0f;
        for (int rank = 0; rank < ranks; rank++) {
            const float* theirs = told + static_cast<std::size_t>(rank) * numbers;
            count += theirs[2 * channels];
            sum += theirs[2 * channels] * theirs[channel];
        }
        const float m = count > 0.0f ? sum / count : 0.0f;
        float square = 0.0f;  // distances within the ranks, and of their means from the common one
        for (int rank = 0; rank < ranks; rank++) {
            const float* theirs = told + static_cast<std::size_t>(rank) * numbers;
            const float distance = theirs[channel] - m;
            square += theirs[2 * channels] * (theirs[channels + channel] + distance * distance);
        }
        mean[channel] = m;
        inverse_std[channel] = 1.0f / sqrtf((count > 0.0f ? square / count : 0.0f) + eps);
        if (channel == 0)
            share[0] = count > 0.0f ? 1.0f / count : 0.0f;
        if (count > 1.0f) {
            const float variance = square / (count - 1.0f);
            running_mean[channel] = (1.0f - momentum) * running_mean[channel] + momentum * m;
            running_var[channel] = (1.0f - momentum) * running_var[channel] + momentum * variance;
        }
    }
}

__global__ void scale(std::size_t n, const float* by, const float* from, float* to) {
    for (std::size_t i : grid_range(n))
        to[i] = from[i] * by[0];
}

void copy(const Tensor& from, float* to) {
    DDP_CHECK(cudaMemcpyAsync(to, from.data(), from.bytes(), cudaMemcpyDeviceToDevice,
                              from.device().stream()));
}

}  // namespace

// ---- Steps

void tell_moments(const Tensor& x, float* told) {
    const PlaneMoments planes = moments_of_planes(x);
    const int channels = x.dim(1);
    launch(x.device().stream(), grid_for(channels), tell_kernel, x.dim(0), channels,
           static_cast<float>(x.dim(2) * x.dim(3)), planes.means.data(), planes.squares.data(),
           told);
}

JoinedMoments join_moments(const float* told, int ranks, const Tensor& running_mean,
                           const Tensor& running_var) {
    Device& device = running_mean.device();
    const int channels = running_mean.dim(0);
    JoinedMoments joined{{Tensor(device, {channels}), Tensor(device, {channels})},
                         Tensor(device, {1})};
    launch(device.stream(), grid_for(channels), join_kernel, ranks, channels, BatchNorm2d::eps,
           BatchNorm2d::momentum, told, joined.moments.mean.data(),
           joined.moments.inverse_std.data(), joined.share.data(), running_mean.data(),
           running_var.data());
    return joined;
}

GradientSums means_over_all(const float* sums, const Tensor& share, int channels) {
    Device& device = share.device();
    const Tensor means(device, {2 * channels});
    launch(device.stream(), grid_for(means.size()), scale, means.size(), share.data(), sums,
           means.data());
    return {means.view(0, {channels}), means.view(static_cast<std::size_t>(channels), {channels})};
}

// ---- The layer

SyncBatchNorm::SyncBatchNorm(std::unique_ptr<BatchNorm2d> plain, Communicator& communicator)
    : Module(plain->name()), plain_(std::move(plain)), communicator_(communicator) {
    Module::set_training(plain_->is_training());
    if (communicator.world_size() == 1)
        return;
    const int channels = plain_->running_mean.dim(0);
    told_ = communicator.allocate<float>(told_numbers(channels) *
                                         static_cast<std::size_t>(communicator.world_size()));
    sums_ = communicator.allocate<float>(2 * static_cast<std::size_t>(channels));
}

void SyncBatchNorm::set_training(bool is_training) {
    Module::set_training(is_training);
    plain_->set_training(is_training);
}

// Gather, do not add: a sum would have lost whose mean weighs how much.
Variable SyncBatchNorm::forward(Variable input) {
    if (!is_training() || communicator_.world_size() == 1)
        return plain_->forward(input);
    const Tensor x = input.value();
    plain_->require_shape(x);
    Stream& stream = x.device().stream();
    const std::size_t numbers = told_numbers(x.dim(1));
    const int ranks = communicator_.world_size();
    float* own = told_.data() + numbers * static_cast<std::size_t>(communicator_.rank().rank());
    tell_moments(x, own);
    communicator_.all_gather(own, told_.data(), numbers, stream, name() + ", moments");
    traffic_.collectives++;
    traffic_.bytes += numbers * sizeof(float);
    const JoinedMoments joined =
        join_moments(told_.data(), ranks, plain_->running_mean, plain_->running_var);
    const Tensor weight = plain_->weight->value;
    Tape& tape = *input.tape;
    return tape.record("sync_batch_norm",
                       normalised(x, joined.moments, weight, plain_->bias->value),
                       {input, tape.parameter(plain_->weight), tape.parameter(plain_->bias)},
                       [=, this](const Tensor& dy, Tape::InputGradients& gradients) {
                           backward(x, weight, joined, dy, gradients);
                       });
}

// weight and bias get what this rank's own values give them: DistributedDataParallel joins those,
// as all gradients of parameters. But x moves the mean of all, and so the outputs of all ranks.
void SyncBatchNorm::backward(const Tensor& x, const Tensor& weight, const JoinedMoments& joined,
                             const Tensor& dy, Tape::InputGradients& gradients) {
    const GradientSums own = sums_of_gradients(x, joined.moments, dy);
    give_parameter_gradients(own, gradients);
    if (!gradients.is_wanted(0))
        return;
    const int channels = x.dim(1);
    copy(own.dy, sums_.data());
    copy(own.product, sums_.data() + channels);
    communicator_.all_reduce(sums_.data(), sums_.data(), sums_.size(), ReduceOp::sum,
                             x.device().stream(), name() + ", gradients");
    traffic_.collectives++;
    traffic_.bytes += sums_.bytes();
    give_input_gradient(x, joined.moments, weight,
                        means_over_all(sums_.data(), joined.share, channels), 1.0f, dy, gradients);
}

// ---- A whole model

std::size_t sync_batch_norm_arena_bytes(const Module& model, int world_size) {
    std::size_t bytes = 0;
    for (const NamedTensor& buffer : model.buffers())
        bytes += told_numbers(static_cast<int>(buffer.value.size())) * sizeof(float) *
                     static_cast<std::size_t>(world_size + 1) +
                 2 * SharedArena::unit;
    return bytes;
}

std::vector<SyncBatchNorm*> convert_sync_batch_norm(Sequential& model, Communicator& communicator) {
    std::vector<SyncBatchNorm*> converted;
    model.replace_layers([&](std::unique_ptr<Module> layer) -> std::unique_ptr<Module> {
        if (dynamic_cast<BatchNorm2d*>(layer.get()) == nullptr)
            return layer;
        std::unique_ptr<BatchNorm2d> plain(static_cast<BatchNorm2d*>(layer.release()));
        auto made = std::make_unique<SyncBatchNorm>(std::move(plain), communicator);
        converted.push_back(made.get());
        return made;
    });
    return converted;
}

}  // namespace ddp
