// The exercise inverse_step: a step, read backwards. Read exercises/01_sgd/README.md first.
#include "exercises/01_sgd/inverse_step.hpp"

namespace ddp {

House house_behind_step(const HouseParameters& before, const HouseParameters& after,
                        double learning_rate) {
    // stub: house_behind_step
    //: You know how three numbers changed, and look for three: bedrooms, bathrooms, price.
    const double gradient_of_b = (before.b - after.b) / learning_rate;
    const double bedrooms = (before.w1 - after.w1) / (before.b - after.b);
    const double bathrooms = (before.w2 - after.w2) / (before.b - after.b);
    const double predicted = before.w1 * bedrooms + before.w2 * bathrooms + before.b;
    const double price = predicted - gradient_of_b / 2;
    return {static_cast<float>(bedrooms), static_cast<float>(bathrooms), static_cast<float>(price)};
    // end stub
}

double largest_learning_rate(const House& house) {
    // stub: largest_rate
    //: How does one step change the error, predicted - price?
    const double x1 = house.bedrooms, x2 = house.bathrooms;
    return 1 / (x1 * x1 + x2 * x2 + 1);
    // end stub
}

}  // namespace ddp
