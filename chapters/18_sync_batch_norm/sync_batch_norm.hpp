#pragma once
// Batch normalisation over the union of all ranks' batches, as if one rank had them all. (PyTorch's
// torch.nn.SyncBatchNorm; torch/nn/modules/_functions.py.)
//
//     convert_sync_batch_norm(*model, *communicator);
//     DistributedDataParallel ddp(*communicator, device, *model);
#include <memory>
#include <vector>

#include "03_network/layers/batch_norm2d.hpp"
#include "03_network/layers/batch_norm_steps.hpp"
#include "03_network/layers/sequential.hpp"
#include "06_messages/support/kernel_loading.hpp"
#include "09_all_reduce/communicator.hpp"

namespace ddp {

// ---- The steps of the layer, in its order. All enqueue their work on the device's stream.

// Returns how many numbers describe a rank's batch: the channels' means, their variances, and the
// count of values per channel.
constexpr std::size_t moments_size(int channels) {
    return 2 * static_cast<std::size_t>(channels) + 1;
}
// Writes these numbers for x [batch, channels, height, width] to `moments`, in device memory. An
// empty batch gives zeros.
void write_moments(const Tensor& x, float* moments);

// The moments of the union of all ranks' batches.
struct CombinedMoments {
    Moments moments;
    Tensor inverse_count;  // [1]: 1 / values per channel, over all ranks; 0 if there are none
};
// Combines the moments of all ranks, which `gathered` has in the order of the ranks. Updates the
// running averages, unless all ranks together have less than two values per channel.
CombinedMoments combine_moments(const float* gathered, int ranks, const Tensor& running_mean,
                                const Tensor& running_var);

// Divides sums over all ranks by the count: `sums` has [2 * channels] numbers, first for dy, then
// for dy * x'. Returns the two means of each channel.
GradientSums divide_by_count(const float* sums, const Tensor& inverse_count, int channels);

// ---- The layer

// The collectives that one rank has enqueued for a layer so far.
struct Traffic {
    int collectives = 0;
    std::size_t bytes = 0;  // that this rank has contributed to them
};

class SyncBatchNorm : public Module {
  public:
    // Replaces `plain`, which it keeps: it uses the parameters and buffers of `plain`, and calls it
    // in evaluation and in a world of one rank. Takes memory from `communicator`, which must
    // outlive this object. All ranks construct theirs in the same order.
    SyncBatchNorm(std::unique_ptr<BatchNorm2d> plain, Communicator& communicator);

    // Normalises [batch, channels, height, width] over the batches of all ranks. In training all
    // ranks call it together, and also the backwards. A rank's batch may have one value per
    // channel, or no picture.
    Variable forward(Variable input) override;
    Parameters parameters() const override { return plain_->parameters(); }
    std::vector<NamedTensor> buffers() const override { return plain_->buffers(); }
    void set_training(bool is_training) override;

    const Traffic& traffic() const { return traffic_; }

  private:
    void backward(const Tensor& x, const Tensor& weight, const CombinedMoments& combined,
                  const Tensor& dy, Tape::InputGradients& gradients);

    const std::unique_ptr<BatchNorm2d> plain_;
    Communicator& communicator_;
    ArenaBuffer<float> gathered_;  // the moments of every rank, by rank
    ArenaBuffer<float> sums_;      // [2 * channels], see divide_by_count
    Traffic traffic_;
    FirstPass first_forward_, first_backward_;  // later layers have products, too
};

// Returns the bytes that a communicator must have for the converted layers of this model, at most.
std::size_t sync_batch_norm_arena_bytes(const Module& model, int world_size);

// Replaces every BatchNorm2d of the model, also within nested networks, by a SyncBatchNorm with the
// same parameters, including frozen ones, and the same buffers. Returns the new layers, in the
// order of the network. All ranks call it together, before DistributedDataParallel and the
// optimizer are made. Throws std::runtime_error if the communicator lacks the memory; the model is
// then unusable.
std::vector<SyncBatchNorm*> convert_sync_batch_norm(Sequential& model, Communicator& communicator);

}  // namespace ddp
