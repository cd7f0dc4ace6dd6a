#pragma once
// Stochastic gradient descent: parameter -= learning_rate * gradient.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "01_sgd/tape.hpp"

namespace ddp {

using Parameters = std::vector<std::shared_ptr<Parameter>>;

// The memory of an optimizer from one step to the next, by names that begin with the parameter's.
// These are the optimizer's own tensors and numbers, not copies: a write changes its state.
struct OptimizerState {
    std::vector<std::pair<std::string, Tensor>> tensors;
    std::vector<std::pair<std::string, int*>> numbers;
};

// The interface of all optimizers: step() changes the parameters by their gradients,
// zero_gradients() makes the gradients absent. A parameter without a gradient is left alone.
class Optimizer {
  public:
    // Throws std::invalid_argument if the learning rate is not a positive, finite number.
    Optimizer(Parameters parameters, double learning_rate);
    virtual ~Optimizer() = default;
    Optimizer(const Optimizer&) = delete;
    Optimizer& operator=(const Optimizer&) = delete;

    // Enqueues the change of every parameter that has a gradient. Gradients stay as they are.
    virtual void step() = 0;
    void zero_gradients();
    // Returns the same names in the same order each time. The optimizer must outlive the result.
    virtual OptimizerState state() { return {}; }
    // Takes effect from the next step on. Throws as the constructor does.
    void set_learning_rate(double learning_rate);
    double learning_rate() const { return learning_rate_; }
    const Parameters& parameters() const { return parameters_; }

  protected:
    Parameters parameters_;
    double learning_rate_ = 0;
};

// parameter -= learning_rate * gradient, and no memory of earlier steps.
class PlainSgd : public Optimizer {
  public:
    using Optimizer::Optimizer;
    void step() override;
};

}  // namespace ddp
