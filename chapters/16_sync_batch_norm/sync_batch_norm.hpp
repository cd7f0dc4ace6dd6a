#pragma once
// Batch normalisation over the batches of all ranks: the mean and the variance of a channel are
// those of the union, as if one rank had it. (PyTorch's torch.nn.SyncBatchNorm;
// torch/nn/modules/_functions.py.)
//
//     convert_sync_batch_norm(*model, *communicator);
//     DistributedDataParallel ddp(*communicator, device, *model);
#include <memory>
#include <vector>

#include "03_network/layers/batch_norm2d.hpp"
#include "03_network/layers/batch_norm_steps.hpp"
#include "03_network/layers/sequential.hpp"
#include "09_all_reduce/communicator.hpp"

namespace ddp {

// ---- Steps, as the layer takes them. All enqueue their work on the device's stream.

// What a rank tells the others of its batch: for each channel the mean, for each the variance, and
// how many values a channel has.
constexpr std::size_t told_numbers(int channels) {
    return 2 * static_cast<std::size_t>(channels) + 1;
}
// Writes that at `told`. A rank without a picture tells zeros.
void tell_moments(const Tensor& x, float* told);

// What all ranks make of what all have told.
struct JoinedMoments {
    Moments moments;
    Tensor share;  // [1]: 1 / values of a channel, over all ranks
};
// `told` is what rank 0 tells, then rank 1, ... The running averages move on; they stay where they
// are if all ranks together have one value a channel, or none.
JoinedMoments join_moments(const float* told, int ranks, const Tensor& running_mean,
                           const Tensor& running_var);

// The sums of all ranks, [2 * channels] at `sums`, become means over all values of a channel.
GradientSums means_over_all(const float* sums, const Tensor& share, int channels);

// ---- The layer

// What a layer has enqueued so far, by one rank.
struct Traffic {
    int collectives = 0;
    std::size_t bytes = 0;  // that this rank has given to them
};

class SyncBatchNorm : public Module {
  public:
    // In place of `plain`, which it keeps: parameters and buffers are those of `plain`, and so are
    // evaluation and a world of one rank. Takes memory from `communicator`, which must live longer.
    // All ranks make theirs in the same order.
    SyncBatchNorm(std::unique_ptr<BatchNorm2d> plain, Communicator& communicator);

    // As BatchNorm2d's, over the batches of all ranks. In training all ranks call it together, and
    // their backwards; a rank may have a batch of one value, or of no picture.
    Variable forward(Variable input) override;
    Parameters parameters() const override { return plain_->parameters(); }
    std::vector<NamedTensor> buffers() const override { return plain_->buffers(); }
    void set_training(bool is_training) override;

    const Traffic& traffic() const { return traffic_; }

  private:
    void backward(const Tensor& x, const Tensor& weight, const JoinedMoments& joined,
                  const Tensor& dy, Tape::InputGradients& gradients);

    const std::unique_ptr<BatchNorm2d> plain_;
    Communicator& communicator_;
    ArenaBuffer<float> told_;  // by every rank
    ArenaBuffer<float> sums_;
    Traffic traffic_;
};

// What a communicator must have for the layers of this model, at most.
std::size_t sync_batch_norm_arena_bytes(const Module& model, int world_size);

// Every BatchNorm2d of the model, those of networks within it too, becomes a SyncBatchNorm with the
// same parameters, frozen ones too, and buffers. Returns them, in the order of the network. All
// ranks call it together, best before DistributedDataParallel and the optimizer are made. Throws
// std::runtime_error if the communicator has not the memory; then the model is of no more use.
std::vector<SyncBatchNorm*> convert_sync_batch_norm(Sequential& model, Communicator& communicator);

}  // namespace ddp
