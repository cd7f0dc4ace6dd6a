#pragma once
// A linear layer and the ReLU behind it, as one layer: y = max(x W^T + b, 0).
//
//     Linear, Relu   forward  product | add bias | max         backward  mask | sum | products
//     LinearRelu     forward  product | add bias and max       backward  mask and sum | products
//
// The results are the same to the bit. Two kernels less are launched, and a tensor less is kept:
// that of the sums before the max.
#include "03_network/layers/sequential.hpp"
#include "03_network/linear.hpp"

namespace ddp {

class LinearRelu : public Module {
  public:
    // Takes over the name, the weight and the bias of `linear`, which must have a bias.
    explicit LinearRelu(const Linear& linear);

    // Computes [batch, inputs] -> [batch, outputs]. Throws as Linear does.
    Variable forward(Variable input) override;
    Parameters parameters() const override { return {weight_, bias_}; }

  private:
    const std::shared_ptr<Parameter> weight_, bias_;
};

// Replaces each Linear with a bias that a Relu follows, and that Relu, by one LinearRelu.
// Parameters stay the same objects. (PyTorch: torch.ao.quantization.fuse_modules; torch.compile
// finds such pairs itself.)
void fuse_linear_relu(Sequential& model);

}  // namespace ddp
