#pragma once
// The contract of the exercise inverse_step: what one step of the chapter's model gives away, and
// how long it may be. The model is price = w1 bedrooms + w2 bathrooms + b, the loss is the squared
// error of one house, and a step is parameter -= learning_rate * gradient.
#include "common/data/houses.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

struct HouseParameters {
    double w1 = 0, w2 = 0, b = 0;
};

// Task house_behind_step. The house from which the step from `before` to `after` was made. It was
// made with `learning_rate`, more than 0; and b has changed.
House house_behind_step(const HouseParameters& before, const HouseParameters& after,
                        double learning_rate);

// Task largest_rate. With which learning rate does descent on this one house, step after step,
// cease to converge? With anything less the error goes to 0, with anything more it grows.
double largest_learning_rate(const House& house);

}  // namespace ddp
