#pragma once
// Stochastic gradient descent: parameter -= learning_rate * gradient.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "01_sgd/tape.hpp"

namespace ddp {

using Parameters = std::vector<std::shared_ptr<Parameter>>;

struct OptimizerState;  // at the end of this file

// The interface of all optimizers: step() changes the parameters by their gradients,
// zero_gradients() makes the gradients absent. A parameter without a gradient does not change.
class Optimizer {
  public:
    // Throws std::invalid_argument if the learning rate is not a positive, finite number, or a
    // parameter is listed twice.
    Optimizer(Parameters parameters, double learning_rate);
    virtual ~Optimizer() = default;
    Optimizer(const Optimizer&) = delete;
    Optimizer& operator=(const Optimizer&) = delete;

    // Enqueues the change of every parameter that has a gradient. Gradients stay as they are.
    virtual void step() = 0;
    // Makes every gradient absent.
    void zero_gradients();
    // Sets the learning rate of all later steps. Throws as the constructor does.
    void set_learning_rate(double learning_rate);
    double learning_rate() const { return learning_rate_; }
    const Parameters& parameters() const { return parameters_; }
    // Returns what a step remembers for the next one. Plain descent remembers nothing.
    virtual OptimizerState state();

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

// ---- The rest can wait: the memory of an optimizer, for trainings that are saved

// Each name begins with the parameter's; names and order are the same each time. The tensors and
// numbers are the optimizer's own, not copies: a write changes its state, and the optimizer must
// outlive them.
struct OptimizerState {
    std::vector<std::pair<std::string, Tensor>> tensors;
    std::vector<std::pair<std::string, int*>> numbers;
};

}  // namespace ddp
