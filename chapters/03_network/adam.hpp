#pragma once
// Adam (Kingma and Ba, 2015): every number gets a step length of its own, from running means of its
// gradient and of the gradient's square.
#include "01_sgd/sgd.hpp"

namespace ddp {

// PyTorch's formula, with weight_decay * value added to the gradient.
class Adam : public Optimizer {
  public:
    // Throws std::invalid_argument as Sgd does.
    Adam(Parameters parameters, double learning_rate = 1e-3, double weight_decay = 0.0);
    void step() override;
    OptimizerState state() override;  // each parameter's exp_avg, exp_avg_sq and step

    static constexpr double beta1 = 0.9;    // how much of the mean stays
    static constexpr double beta2 = 0.999;  // the same for the mean square
    static constexpr double eps = 1e-8;

  private:
    struct State {
        Tensor mean, square;
        int steps = 0;  // with a gradient
    };

    double weight_decay_;
    std::vector<State> states_;  // one a parameter
};

}  // namespace ddp
