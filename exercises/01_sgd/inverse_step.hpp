#pragma once
// The contract of the exercise inverse_step: what one step of the chapter's model reveals, and how
// long a step may be. The model is price = w1 bedrooms + w2 bathrooms + b, the loss is the squared
// error of one house, and a step is parameter -= learning_rate * gradient.
#include "common/data/houses.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

struct HouseParameters {
    double w1 = 0, w2 = 0, b = 0;
};

// Task house_behind_step. Returns the house on which the step from `before` to `after` was made.
// `learning_rate` is more than 0, and the step has changed b. The numbers of a house need not be
// whole.
House house_behind_step(const HouseParameters& before, const HouseParameters& after,
                        double learning_rate);

// Task largest_rate. Returns the learning rate at which descent on this one house, step after step,
// ceases to converge: with a smaller rate the error goes to 0, with a larger one it grows.
double largest_learning_rate(const House& house);

}  // namespace ddp
