// The exercise weight_decay: two ways to keep weights small. Read exercises/03_network/README.md
// first.
#include "exercises/03_network/weight_decay.hpp"

#include <cmath>

#include "03_network/optimizers.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// stub
//: The class and its kernel go here. It may own an Adam of the chapter
//: (03_network/optimizers.hpp), which does the second half of the work.

// Multiplies n values by `factor`.
__global__ void scale(std::size_t n, float factor, float* values) {
    for (std::size_t i : grid_range(n))
        values[i] *= factor;
}

// Shrinks the values, and then lets an Adam without weight decay take its step.
class AdamW : public Optimizer {
  public:
    AdamW(Parameters parameters, double learning_rate, double weight_decay)
        : Optimizer(parameters, learning_rate),
          weight_decay_(weight_decay),
          adam_(parameters, learning_rate) {}

    void step() override {
        const auto factor = static_cast<float>(1 - learning_rate_ * weight_decay_);
        for (const auto& parameter : parameters_) {
            if (!parameter->has_gradient())
                continue;
            Tensor& value = parameter->value;
            launch(value.device().stream(), grid_for(value.size()), scale, value.size(), factor,
                   value.data());
        }
        adam_.set_learning_rate(learning_rate_);
        adam_.step();
    }
    OptimizerState state() override { return adam_.state(); }

  private:
    double weight_decay_;
    Adam adam_;
};
// end stub

}  // namespace

double after_sgd(double value, double learning_rate, double momentum, double weight_decay,
                 int steps) {
    // stub: sgd
    //: The gradient is 0, but something is added to it: see the formula in optimizers.hpp.
    double velocity = 0;
    for (int i = 0; i < steps; i++) {
        velocity = momentum * velocity + weight_decay * value;
        value -= learning_rate * velocity;
    }
    return value;
    // end stub
}

double after_first_adam_step(double value, double gradient, double learning_rate,
                             double weight_decay) {
    // stub: adam
    //: How long is a first step of Adam? See the formula in adam.cu, with both means at 0.
    const double g = gradient + weight_decay * value;
    return value - learning_rate * g / (std::abs(g) + Adam::eps);
    // end stub
}

std::unique_ptr<Optimizer> make_adamw(Parameters parameters, double learning_rate,
                                      double weight_decay) {
    // stub: adamw
    //: return std::make_unique<YourClass>(parameters, learning_rate, weight_decay);
    return std::make_unique<AdamW>(parameters, learning_rate, weight_decay);
    // end stub
}

}  // namespace ddp
