#pragma once
// The linear layer, y = x W^T + b: every output is a weighted sum of all inputs.
#include "03_network/layer.hpp"
#include "common/data/random.hpp"

namespace ddp {

class Linear : public Module {
  public:
    // Creates weight [outputs, inputs] and bias [outputs]. Their first values are drawn from
    // +-1 / sqrt(inputs), as in PyTorch.
    Linear(std::string name, Device& device, int inputs, int outputs, Random& random,
           bool has_bias = true);

    // Computes [batch, inputs] -> [batch, outputs].
    Variable forward(Variable input) override;
    Parameters parameters() const override;

    const std::shared_ptr<Parameter> weight;
    const std::shared_ptr<Parameter> bias;  // null in a layer without bias
};

}  // namespace ddp
