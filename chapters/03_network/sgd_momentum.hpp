#pragma once
// Stochastic gradient descent that keeps its direction.
#include "01_sgd/sgd.hpp"

namespace ddp {

// PyTorch's formula: velocity = momentum * velocity + (gradient + weight_decay * value), then
// value -= learning_rate * velocity.
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
    std::vector<Tensor> velocities_;  // one a parameter
};

}  // namespace ddp
