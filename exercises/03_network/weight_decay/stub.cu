// The exercise weight_decay: two ways to keep weights small. Read exercises/03_network/README.md
// first.
#include "exercises/03_network/weight_decay.hpp"

#include <cmath>

#include "03_network/optimizers.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// The class and its kernel go here. It may own an Adam of the chapter
// (03_network/optimizers.hpp), which does the second half of the work.

}  // namespace

double after_sgd(double value, double learning_rate, double momentum, double weight_decay,
                 int steps) {
    // The gradient is 0, but something is added to it: see the formula in optimizers.hpp.
    throw NotImplemented("sgd");
}

double after_first_adam_step(double value, double gradient, double learning_rate,
                             double weight_decay) {
    // How long is a first step of Adam? See the formula in adam.cu, with both means at 0.
    throw NotImplemented("adam");
}

std::unique_ptr<Optimizer> make_adamw(Parameters parameters, double learning_rate,
                                      double weight_decay) {
    // return std::make_unique<YourClass>(parameters, learning_rate, weight_decay);
    throw NotImplemented("adamw");
}

}  // namespace ddp
