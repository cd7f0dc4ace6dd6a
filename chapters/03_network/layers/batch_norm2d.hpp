#pragma once
// Batch normalisation (Ioffe and Szegedy, 2015): each channel is shifted and scaled to mean 0 and
// variance 1, and then shifted and scaled by learned numbers. In training the mean and the variance
// are those of the batch, over all its pictures and pixels; in evaluation they are the running
// averages that training has kept.
#include "03_network/layer.hpp"

namespace ddp {

class BatchNorm2d : public Module {
  public:
    // Creates weight (1), bias (0), running_mean (0) and running_var (1), in brackets the value
    // that each begins with.
    BatchNorm2d(std::string name, Device& device, int channels);

    // Computes [batch, channels, height, width] -> the same shape. Throws std::invalid_argument in
    // training if a channel has one value only, since its variance is then not known.
    Variable forward(Variable input) override;
    Parameters parameters() const override { return {weight, bias}; }
    std::vector<NamedTensor> buffers() const override;
    // Throws std::invalid_argument, naming the layer, unless x is [batch, channels, height, width].
    void require_shape(const Tensor& x) const;

    const std::shared_ptr<Parameter> weight, bias;  // [channels]
    Tensor running_mean, running_var;               // [channels]

    static constexpr float eps = 1e-5f;      // added to the variance
    static constexpr float momentum = 0.1f;  // the share of a new batch in the running averages
};

}  // namespace ddp
