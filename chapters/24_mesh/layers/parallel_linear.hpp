#pragma once
// Linear layers of which each rank has a part.
#include <memory>
#include <string>
#include <vector>

#include "03_network/linear.hpp"
#include "24_mesh/tensor_parallel.hpp"

namespace ddp {

// A linear layer cut by its outputs: each part computes some columns of y from all of x.
class ColumnParallelLinear {
  public:
    // Draws the whole matrix [outputs, inputs], and keeps this rank's parts of it: NAME.part0 and
    // so on. Throws std::invalid_argument if the parts do not divide `outputs`.
    ColumnParallelLinear(TensorParallel& parallel, const std::string& name, Device& device,
                         int inputs, int outputs, Random& random);

    // Computes [batch, inputs] -> [batch, outputs / parts], part by part.
    PartVariables forward(const PartVariables& x);
    void append_to(Parameters& parameters) const;

  private:
    std::vector<std::unique_ptr<Linear>> parts_;
};

// A linear layer cut by its inputs: each part computes a summand of all of y from some columns of
// x. It has no bias: that would be added once, after the sum.
class RowParallelLinear {
  public:
    RowParallelLinear(TensorParallel& parallel, const std::string& name, Device& device, int inputs,
                      int outputs, Random& random);

    // Computes [batch, inputs / parts], part by part -> [batch, outputs].
    Variable forward(const PartVariables& x);
    void append_to(Parameters& parameters) const;

  private:
    TensorParallel& parallel_;
    const std::string name_;
    std::vector<std::unique_ptr<Linear>> parts_;
};

}  // namespace ddp
