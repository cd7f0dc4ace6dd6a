// One step of the layer, on each rank r. There are C channels; n_r, m_r and v_r are the count, mean
// and variance of a channel's values on rank r.
//
//     forward    write_moments      m_r and v_r for each channel, and n_r       2C + 1 numbers
//                all_gather         every rank gets the numbers of all ranks
//                combine_moments    n = sum n_r
//                                   m = sum n_r m_r / n
//                                   v = sum n_r (v_r + (m_r - m)^2) / n
//                normalised         y = (x - m) / sqrt(v + eps) * weight + bias
//
//     backward   sums_of_gradients  sum dy and sum dy x' of this rank           2C numbers
//                                   (they are the gradients of bias and weight)
//                all_reduce         the same sums over all ranks
//                divide_by_count    by n
//                give_input_gradient  dx = weight / std (dy - mean dy - x' mean (dy x'))
#include "18_sync_batch_norm/sync_batch_norm.hpp"

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// Combines the planes of each channel, one channel of one picture each, as BatchNorm2d does:
// `means` and `squares` are PlaneMoments. One thread for each channel.
__global__ void moments_kernel(int batch, int channels, float plane, const float* means,
                               const float* squares, float* moments) {
    const std::size_t planes = static_cast<std::size_t>(batch) * channels;
    const float count = static_cast<float>(batch) * plane;
    for (std::size_t channel : grid_range(channels)) {
        // All planes have the same size, so the mean of their means is the mean.
        float sum = 0.0f;
        for (std::size_t i = channel; i < planes; i += channels)
            sum += means[i];
        const float mean = batch > 0 ? sum / batch : 0.0f;
        // Squared distances within the planes, and of the planes' means from the common mean.
        float square = 0.0f;
        for (std::size_t i = channel; i < planes; i += channels)
            square += squares[i] + plane * (means[i] - mean) * (means[i] - mean);
        moments[channel] = mean;
        moments[channels + channel] = batch > 0 ? square / count : 0.0f;
        if (channel == 0)  // the count is the same for all channels
            moments[2 * channels] = count;
    }
}

// Combines the moments of all ranks. One thread for each channel goes through the ranks in their
// order: all ranks compute the same bits. A rank without a picture has the weight 0.
__global__ void combine_kernel(int ranks, int channels, float eps, float momentum,
                               const float* gathered, float* mean, float* inverse_std,
                               float* inverse_count, float* running_mean, float* running_var) {
    const int numbers = 2 * channels + 1;
    for (std::size_t channel : grid_range(channels)) {
        // n and m
        float count = 0.0f, sum = 0.0f;
        for (int rank = 0; rank < ranks; rank++) {
            const float* theirs = gathered + static_cast<std::size_t>(rank) * numbers;
            count += theirs[2 * channels];
            sum += theirs[2 * channels] * theirs[channel];
        }
        const float m = count > 0.0f ? sum / count : 0.0f;
        float square = 0.0f;  // n v: distances within each rank, and of its mean from m
        for (int rank = 0; rank < ranks; rank++) {
            const float* theirs = gathered + static_cast<std::size_t>(rank) * numbers;
            const float distance = theirs[channel] - m;
            square += theirs[2 * channels] * (theirs[channels + channel] + distance * distance);
        }
        mean[channel] = m;
        inverse_std[channel] = 1.0f / sqrtf((count > 0.0f ? square / count : 0.0f) + eps);
        if (channel == 0)
            inverse_count[0] = count > 0.0f ? 1.0f / count : 0.0f;
        // The running variance is an estimate for all data: the union loses its one, not the rank.
        if (count > 1.0f) {
            const float variance = square / (count - 1.0f);
            running_mean[channel] = (1.0f - momentum) * running_mean[channel] + momentum * m;
            running_var[channel] = (1.0f - momentum) * running_var[channel] + momentum * variance;
        }
    }
}

// Multiplies by a number in device memory.
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

void write_moments(const Tensor& x, float* moments) {
    // In two stages: planes first, which gives the kernel many threads; then channels.
    const PlaneMoments planes = moments_of_planes(x);
    const int channels = x.dim(1);
    launch(x.device().stream(), grid_for(channels), moments_kernel, x.dim(0), channels,
           static_cast<float>(x.dim(2) * x.dim(3)), planes.means.data(), planes.squares.data(),
           moments);
}

CombinedMoments combine_moments(const float* gathered, int ranks, const Tensor& running_mean,
                                const Tensor& running_var) {
    Device& device = running_mean.device();
    const int channels = running_mean.dim(0);
    CombinedMoments combined{{Tensor(device, {channels}), Tensor(device, {channels})},
                             Tensor(device, {1})};
    launch(device.stream(), grid_for(channels), combine_kernel, ranks, channels, BatchNorm2d::eps,
           BatchNorm2d::momentum, gathered, combined.moments.mean.data(),
           combined.moments.inverse_std.data(), combined.inverse_count.data(), running_mean.data(),
           running_var.data());
    return combined;
}

GradientSums divide_by_count(const float* sums, const Tensor& inverse_count, int channels) {
    Device& device = inverse_count.device();
    const Tensor means(device, {2 * channels});
    launch(device.stream(), grid_for(means.size()), scale, means.size(), inverse_count.data(), sums,
           means.data());
    return {means.view(0, {channels}), means.view(static_cast<std::size_t>(channels), {channels})};
}

// ---- The layer

SyncBatchNorm::SyncBatchNorm(std::unique_ptr<BatchNorm2d> plain, Communicator& communicator)
    : Module(plain->name()), plain_(std::move(plain)), communicator_(communicator) {
    Module::set_training(plain_->is_training());
    if (communicator.world_size() == 1)  // plain_ does it all
        return;
    const int channels = plain_->running_mean.dim(0);
    gathered_ = communicator.allocate<float>(moments_size(channels) *
                                             static_cast<std::size_t>(communicator.world_size()));
    sums_ = communicator.allocate<float>(2 * static_cast<std::size_t>(channels));
}

void SyncBatchNorm::set_training(bool is_training) {
    Module::set_training(is_training);
    plain_->set_training(is_training);
}

// Gathers the ranks' numbers instead of adding them: a sum of means would lose their weights, and a
// variance can only be added once the common mean is known.
Variable SyncBatchNorm::forward(Variable input) {
    if (!is_training() || communicator_.world_size() == 1)
        return plain_->forward(input);
    // This rank's moments go to its own place in the gathered array.
    const Tensor x = input.value();
    plain_->require_shape(x);
    Stream& stream = x.device().stream();
    const std::size_t numbers = moments_size(x.dim(1));
    const int ranks = communicator_.world_size();
    float* own = gathered_.data() + numbers * static_cast<std::size_t>(communicator_.index());
    write_moments(x, own);
    first_forward_.enclose(communicator_.rank(), stream, [&] {
        communicator_.all_gather(own, gathered_.data(), numbers, stream, name() + ", moments");
    });
    traffic_.collectives++;
    traffic_.bytes += numbers * sizeof(float);
    // Now every rank has the same mean and variance, and normalising is local work.
    const CombinedMoments combined =
        combine_moments(gathered_.data(), ranks, plain_->running_mean, plain_->running_var);
    const Tensor weight = plain_->weight->value;
    Tape& tape = *input.tape;
    return tape.record("sync_batch_norm",
                       normalised(x, combined.moments, weight, plain_->bias->value),
                       {input, tape.parameter(plain_->weight), tape.parameter(plain_->bias)},
                       [=, this](const Tensor& dy, Tape::InputGradients& gradients) {
                           backward(x, weight, combined, dy, gradients);
                       });
}

// Gives weight and bias the sums of this rank only, which DistributedDataParallel averages. x needs
// the sums of all ranks, because it moves the common mean, and with it the outputs on all ranks.
void SyncBatchNorm::backward(const Tensor& x, const Tensor& weight, const CombinedMoments& combined,
                             const Tensor& dy, Tape::InputGradients& gradients) {
    const GradientSums own = sums_of_gradients(x, combined.moments, dy);
    give_parameter_gradients(own, gradients);
    if (!gradients.is_wanted(0))
        return;
    // Both sums travel in one all-reduce.
    const int channels = x.dim(1);
    copy(own.dy, sums_.data());
    copy(own.product, sums_.data() + channels);
    first_backward_.enclose(communicator_.rank(), x.device().stream(), [&] {
        communicator_.all_reduce(sums_.data(), sums_.data(), sums_.size(), ReduceOp::sum,
                                 x.device().stream(), name() + ", gradients");
    });
    traffic_.collectives++;
    traffic_.bytes += sums_.bytes();
    give_input_gradient(x, combined.moments, weight,
                        divide_by_count(sums_.data(), combined.inverse_count, channels), 1.0f, dy,
                        gradients);
}

}  // namespace ddp
