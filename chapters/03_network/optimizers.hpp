#pragma once
// The two optimizers of the book: SGD with momentum (sgd_momentum.cu) and Adam (adam.cu).
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
    void step_and_zero_gradients() override;
    OptimizerState state() override;  // each parameter's momentum_buffer

  private:
    enum class Gradients { stay, become_zero };
    void step(Gradients gradients);

    double momentum_, weight_decay_;
    std::vector<Tensor> velocities_;  // one per parameter
};

// Adam (Kingma and Ba, 2015): every number gets a step length of its own, from running means of its
// gradient and of the gradient's square. PyTorch's formula, with weight_decay * value added to the
// gradient.
class Adam : public Optimizer {
  public:
    // Throws std::invalid_argument as Sgd does.
    Adam(Parameters parameters, double learning_rate = 1e-3, double weight_decay = 0.0);
    void step() override;
    OptimizerState state() override;  // each parameter's exp_avg, exp_avg_sq and step

    static constexpr double beta1 = 0.9;    // the share of the old mean that is kept in a step
    static constexpr double beta2 = 0.999;  // the same for the mean square
    static constexpr double eps = 1e-8;     // keeps the division away from 0

  private:
    struct State {
        Tensor mean, square;
        int steps = 0;  // steps in which the parameter had a gradient
    };

    double weight_decay_;
    std::vector<State> states_;  // one per parameter
};

}  // namespace ddp
