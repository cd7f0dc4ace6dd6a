// The exercise inverse_step: a step, read backwards. Read exercises/01_sgd/README.md first.
#include "exercises/01_sgd/inverse_step.hpp"

namespace ddp {

House house_behind_step(const HouseParameters& before, const HouseParameters& after,
                        double learning_rate) {
    // You know how three numbers changed, and look for three: bedrooms, bathrooms, price.
    throw NotImplemented("house_behind_step");
}

double largest_learning_rate(const House& house) {
    // How does one step change the error, predicted - price?
    throw NotImplemented("largest_rate");
}

}  // namespace ddp
