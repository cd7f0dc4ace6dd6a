#pragma once
// Linear layers of which each rank has a part.
#include <memory>
#include <string>
#include <vector>

#include "03_network/linear.hpp"
#include "24_mesh/tensor_parallel.hpp"

namespace ddp {

// This rank's parts of a matrix, each a linear layer without bias.
class MatrixParts {
  public:
    void append_to(Parameters& parameters) const;

  protected:
    // Draws the whole matrix [outputs, inputs], and keeps some of its rows, or of its columns, as
    // NAME.part0 and so on. Throws std::invalid_argument if the parts do not divide them.
    MatrixParts(const TensorParallel& parallel, const std::string& name, Device& device, int inputs,
                int outputs, bool by_rows, Random& random);
    PartVariables multiply(const PartVariables& x) const;

  private:
    std::vector<std::unique_ptr<Linear>> parts_;
};

// A linear layer cut by its outputs: each part computes some columns of y from all of x.
class ColumnParallelLinear : public MatrixParts {
  public:
    ColumnParallelLinear(TensorParallel& parallel, const std::string& name, Device& device,
                         int inputs, int outputs, Random& random)
        : MatrixParts(parallel, name, device, inputs, outputs, true, random) {}
    // Computes [batch, inputs] -> [batch, outputs / parts], part by part.
    PartVariables forward(const PartVariables& x) const { return multiply(x); }
};

// A linear layer cut by its inputs: each part computes a summand of all of y from some columns of
// x. It has no bias: that would be added once, after the sum.
class RowParallelLinear : public MatrixParts {
  public:
    RowParallelLinear(TensorParallel& parallel, const std::string& name, Device& device, int inputs,
                      int outputs, Random& random)
        : MatrixParts(parallel, name, device, inputs, outputs, false, random),
          parallel_(parallel),
          name_(name) {}
    // Computes [batch, inputs / parts], part by part -> [batch, outputs].
    Variable forward(const PartVariables& x) const {
        return sum_of_parts(parallel_, multiply(x), name_);
    }

  private:
    TensorParallel& parallel_;
    const std::string name_;
};

}  // namespace ddp
