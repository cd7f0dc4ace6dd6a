#pragma once
// Mixed precision: linear layers multiply numbers of 16 bits and add up in 32, as tensor cores do.
// Parameters, their gradients and the optimizer's state stay float32 ("master weights").
// (Micikevicius et al., "Mixed Precision Training", 2018; torch.autocast.)
//
//     use_mixed_precision<__half>(model);  // before DistributedDataParallel is made of it
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "03_network/layers/sequential.hpp"
#include "03_network/linear.hpp"

namespace ddp {

// A Linear whose GEMMs multiply numbers of type T: __half or __nv_bfloat16. It computes the same as
// PyTorch's Linear under torch.autocast: input, weight, bias and dy are rounded to T, and so are y,
// dx, dW and db, each once, from a sum in float32. The results are numbers of type T in float
// tensors, like all values on the tape.
template <class T>
class MixedLinear : public Module {
  public:
    // Takes over the layer's parameters, which stay float32.
    explicit MixedLinear(std::unique_ptr<Linear> linear);

    Variable forward(Variable input) override;
    Parameters parameters() const override { return linear_->parameters(); }

  private:
    const std::unique_ptr<Linear> linear_;
};

// Replaces every Linear of the network, and of networks within it, by a MixedLinear<T>. All other
// layers and the loss stay in float32.
template <class T>
void use_mixed_precision(Sequential& model);

}  // namespace ddp
