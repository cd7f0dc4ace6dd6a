#pragma once
// Batch normalisation: each channel is shifted and scaled to mean 0 and variance 1, then by learned
// numbers. In training the mean and the variance are those of the batch, over all its pictures and
// pixels; in evaluation they are running averages of what training saw.
#include "03_network/layer.hpp"

namespace ddp {

class BatchNorm2d : public Module {
  public:
    // weight begins at 1, bias at 0, running_mean at 0 and running_var at 1.
    BatchNorm2d(std::string name, Device& device, int channels);

    // [batch, channels, height, width], the same shape out. Throws std::invalid_argument in
    // training if a channel has one value only: its variance is not known.
    Variable forward(Variable input) override;
    Parameters parameters() const override { return {weight, bias}; }
    std::vector<NamedTensor> buffers() const override;
    // Throws std::invalid_argument, naming the layer, for another shape.
    void require_shape(const Tensor& x) const;

    const std::shared_ptr<Parameter> weight, bias;  // [channels]
    Tensor running_mean, running_var;               // [channels]

    static constexpr float eps = 1e-5f;      // added to the variance
    static constexpr float momentum = 0.1f;  // the share of a new batch in the running averages
};

}  // namespace ddp
