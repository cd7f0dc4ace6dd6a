#pragma once
// Stochastic gradient descent: parameter -= learning_rate * gradient.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "01_sgd/tape.hpp"

namespace ddp {

using Parameters = std::vector<std::shared_ptr<Parameter>>;

// What an optimizer remembers from one step to the next, by names that begin with the parameter's:
// the optimizer's own tensors and numbers. Whoever writes into them changes what it remembers.
struct OptimizerState {
    std::vector<std::pair<std::string, Tensor>> tensors;
    std::vector<std::pair<std::string, int*>> numbers;
};

// What every optimizer does: step() changes the parameters by their gradients, zero_gradients()
// makes the gradients absent. A parameter without a gradient is left alone.
class Optimizer {
  public:
    // Throws std::invalid_argument if the learning rate is not a positive, finite number.
    Optimizer(Parameters parameters, double learning_rate);
    virtual ~Optimizer() = default;
    Optimizer(const Optimizer&) = delete;
    Optimizer& operator=(const Optimizer&) = delete;

    virtual void step() = 0;
    void zero_gradients();
    // step() and then zero_gradients(). An optimizer may zero each gradient in the pass that reads
    // it: backward then adds to zeros, which saves a BLAS the pass that clears its result.
    virtual void step_and_zero_gradients();
    // The same names in the same order each time; the optimizer must live longer.
    virtual OptimizerState state() { return {}; }
    // From the next step on. Throws as the constructor does.
    void set_learning_rate(double learning_rate);
    double learning_rate() const { return learning_rate_; }
    const Parameters& parameters() const { return parameters_; }

  protected:
    Parameters parameters_;
    double learning_rate_ = 0;
};

class PlainSgd : public Optimizer {
  public:
    using Optimizer::Optimizer;
    void step() override;
};

}  // namespace ddp
