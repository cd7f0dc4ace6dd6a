#pragma once
// The matrix products of a step of the MLP, and nothing else: what BLAS alone would take.
//
//     forward    y = x W^T                 for each linear layer
//     backward   dW = dy^T x, dx = dy W    for each, from the last one; the first needs no dx
#include <vector>

#include "01_sgd/sgd.hpp"
#include "05_ranks/rank.hpp"
#include "common/data/random.hpp"

namespace ddp {

class StepProducts {
  public:
    // Takes the linear layers among `parameters`, in their order, and `batch` samples a step.
    // `rank` and `device` must outlive this object.
    StepProducts(Rank& rank, Device& device, const Parameters& parameters, int batch,
                 Random& random);

    // Makes the products of `steps` steps. Returns the seconds from when all ranks began until all
    // have ended. All ranks call it together.
    double run(int steps);

  private:
    void step();

    Rank& rank_;
    Device& device_;
    std::vector<Tensor> x_, dy_;       // [batch, width], by the place between layers
    std::vector<Tensor> weight_, dw_;  // [outputs, inputs], by layer
};

}  // namespace ddp
