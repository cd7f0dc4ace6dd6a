#pragma once
// Exercise inverse_step: what one step of the chapter's model reveals, and how long a step may be.
//
//     price = w1 bedrooms + w2 bathrooms + b,   the loss is the squared error of one house
//
//     before (0, 0, 0)   after (22.5, 7.5, 3.75)   learning rate 0.125:   6 bedrooms, 2 bathrooms,
//                                                                         price 15
//
// The check also tries: a house without bedrooms or without bathrooms, numbers that are not whole.
#include "common/data/houses.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

struct HouseParameters {
    double w1 = 0, w2 = 0, b = 0;
};

// Task house_behind_step. Returns the house on which the step from `before` to `after` was made.
// The step has changed b.
House house_behind_step(const HouseParameters& before, const HouseParameters& after,
                        double learning_rate);

// Task largest_rate. Returns the learning rate above which descent on this one house, step after
// step, diverges: with a smaller rate the error goes to 0, with a larger one it grows.
double largest_learning_rate(const House& house);

}  // namespace ddp
