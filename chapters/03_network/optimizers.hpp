#pragma once
// The two optimizers of the book: SGD with momentum (sgd_momentum.cu) and Adam (layers/adam.cu).
// The same steps in less time: layers/fused_optimizers.hpp.
#include "01_sgd/sgd.hpp"

namespace ddp {

// Stochastic gradient descent that keeps its direction. PyTorch's formula:
//
//     velocity = momentum * velocity + (gradient + weight_decay * value)
//     value   -= learning_rate * velocity
class Sgd : public Optimizer {
  public:
    // Throws std::invalid_argument if the learning rate is not a positive, finite number, momentum
    // not within [0, 1), or weight_decay negative or not finite.
    Sgd(Parameters parameters, double learning_rate, double momentum = 0.9,
        double weight_decay = 0.0);
    void step() override;
    OptimizerState state() override;  // each parameter's momentum_buffer

  protected:
    double momentum_, weight_decay_;
    std::vector<Tensor> velocities_;  // one per parameter
};

// Adam (Kingma and Ba, 2015): every number gets its own step length, from running means of its
// gradient and of the gradient's square. PyTorch's formula, with weight_decay * value added to the
// gradient.
class Adam : public Optimizer {
  public:
    static constexpr double eps = 1e-8;  // the usual one

    // `eps` is added to the root of the mean square, which may be 0. Throws std::invalid_argument
    // as Sgd does, and unless `eps` is positive.
    Adam(Parameters parameters, double learning_rate = 1e-3, double weight_decay = 0.0,
         double eps = Adam::eps);
    void step() override;
    OptimizerState state() override;  // each parameter's exp_avg, exp_avg_sq and step

    static constexpr double beta1 = 0.9;    // how much of the old mean a step keeps
    static constexpr double beta2 = 0.999;  // and of the old mean square

  protected:
    struct State {
        Tensor mean, square;
        int steps = 0;  // steps in which the parameter had a gradient
    };

    double weight_decay_, eps_;
    std::vector<State> states_;  // one per parameter
};

}  // namespace ddp
