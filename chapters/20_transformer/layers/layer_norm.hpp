#pragma once
// Layer normalisation (Ba, Kiros and Hinton, 2016): each row is shifted and scaled to mean 0 and
// variance 1, and then each column by learned numbers. BatchNorm takes mean and variance over the
// batch; this takes them over one token's own numbers. So ranks need not exchange them, training
// and evaluation compute the same, and padding does not change its neighbours.
#include "03_network/layer.hpp"

namespace ddp {

class LayerNorm : public Module {
  public:
    // Creates weight (1) and bias (0), in brackets the value that each begins with.
    LayerNorm(std::string name, Device& device, int width);

    // Computes [rows, width] -> the same shape.
    Variable forward(Variable input) override;
    Parameters parameters() const override { return {weight, bias}; }

    const std::shared_ptr<Parameter> weight, bias;  // [width]

    static constexpr float eps = 1e-5f;  // added to the variance
};

}  // namespace ddp
