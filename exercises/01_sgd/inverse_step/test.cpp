// The exercise inverse_step, beside what the chapter's own model does: its kernels make the steps,
// and find the largest learning rate by trying.
#include "exercises/01_sgd/inverse_step.hpp"

#include <cmath>
#include <string>
#include <utility>

#include "01_sgd/house_model.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

// Makes steps of the chapter's model on one house. Returns the loss before the last one.
double descend(const House& house, HouseParameters& parameters, double learning_rate, int steps) {
    Device device;
    const HouseData data(device, {house});
    const HouseModel model(device);
    PlainSgd optimizer(model.parameters(), learning_rate);
    const std::pair<std::shared_ptr<Parameter>, double*> all[] = {
        {model.w1, &parameters.w1}, {model.w2, &parameters.w2}, {model.b, &parameters.b}};
    for (const auto& [parameter, value] : all)
        parameter->value.copy_from(std::vector<float>{static_cast<float>(*value)});
    double last = 0;
    for (int i = 0; i < steps; i++) {
        Tape tape(device);
        const Variable loss = model.loss(tape, data, 0);
        tape.backward(loss);
        optimizer.step();
        optimizer.zero_gradients();
        last = static_cast<double>(loss.value().to_host()[0]);
    }
    for (const auto& [parameter, value] : all)
        *value = static_cast<double>(parameter->value.to_host()[0]);
    return last;
}

// Holds what an answer would be if one made a certain mistake, and what to tell of it.
struct Mistake {
    double yours, mistaken;
    const char* words;
};
std::string cause_of(const std::vector<Mistake>& mistakes, const std::string& otherwise) {
    for (const Mistake& mistake : mistakes)
        if (std::abs(mistake.yours - mistake.mistaken) <
            0.002 * std::abs(mistake.mistaken))  // never if 0
            return mistake.words;
    return otherwise;
}

// ---- Task house_behind_step

std::string text(const House& house) {
    return std::to_string(house.bedrooms) + " bedrooms, " + std::to_string(house.bathrooms) +
           " bathrooms, price " + std::to_string(house.price);
}

void check_house(const House& house, const HouseParameters& before, double learning_rate,
                 const std::string& hint) {
    HouseParameters after = before;
    descend(house, after, learning_rate, 1);
    const House found = house_behind_step(before, after, learning_rate);
    const double x1 = house.bedrooms, x2 = house.bathrooms;
    const double predicted = before.w1 * x1 + before.w2 * x2 + before.b;
    const double error = predicted - static_cast<double>(house.price);
    // The parameters are floats: their differences have lost some digits.
    if (!(std::abs(found.bedrooms - house.bedrooms) <= 0.02F &&
          std::abs(found.bathrooms - house.bathrooms) <= 0.02F &&
          std::abs(found.price - house.price) <= 0.1F))
        throw Wrong(
            "You say " + text(found) + "; the step was made on " + text(house) + ".\n" +
            cause_of(
                {{found.bedrooms, x2, "Bedrooms and bathrooms are swapped: w1 is of bedrooms."},
                 {found.bedrooms, 2 * error * x1,
                  "These are the gradients of w1 and w2, 2 e x1 and 2 e x2, not x1 and x2."},
                 {found.price, predicted - 2 * error,
                  "The gradient of b is 2 e: the derivative of a square has a factor of 2."},
                 {found.price, predicted + error,
                  "The sign of e is wrong: it is predicted - price."},
                 {found.price, -error, "That price is -e alone: what did the model predict?"},
                 {found.price, predicted - error * learning_rate,
                  "A step is the learning rate times the gradient."}},
                hint));
}

void check_house_behind_step() {
    check_house({6, 2, 15}, {}, 0.125, "All parameters were 0 before the step.");
    check_house({3, 1, 5}, {0.5, 0.25, -1}, 0.01,
                "The parameters were not 0 before the step. What did the model predict?");
    check_house({7, 3, 4}, {2, 1.5, 3}, 0.01, "The prediction was too high.");
    check_house({2.5F, 0, 7.25F}, {0.5, 0.25, -1}, 0.01,
                "No bathrooms: which change is never 0, so that you can divide by it?");
    check_house({0, 2, 3}, {0.5, 0.25, -1}, 0.01,
                "No bedrooms: which change is never 0, so that you can divide by it?");
}

// ---- Task largest_rate

double measured_rate(const House& house) {
    const auto loss_after = [&](double rate, int steps) {
        HouseParameters parameters;
        return descend(house, parameters, rate, steps + 1);
    };
    double converging = 1e-7, diverging = 2;
    for (int i = 0; i < 12; i++) {
        const double middle = std::sqrt(converging * diverging);
        const bool converges = loss_after(middle, 20) < loss_after(middle, 0);  // NaN does not
        (converges ? converging : diverging) = middle;
    }
    return std::sqrt(converging * diverging);
}

void check_rate(const House& house, const std::string& hint) {
    const double yours = largest_learning_rate(house), measured = measured_rate(house);
    const double x1 = house.bedrooms, x2 = house.bathrooms, squares = x1 * x1 + x2 * x2 + 1;
    if (!(std::abs(yours - measured) <= 0.02 * measured))
        throw Wrong(
            text(house) + ": you predict " + std::to_string(yours) +
            ", and the chapter's model converges up to " + std::to_string(measured) + ".\n" +
            cause_of({{yours, 2 / squares,
                       "That is twice the rate: the gradient has a factor of 2, too."},
                      {yours, 0.5 / squares,
                       "At that rate one step makes the error 0. With a larger one it still "
                       "shrinks, until the factor is -1."},
                      {yours, 1 / (x1 + x2 + 1),
                       "w1 changes by a multiple of x1, which the prediction multiplies by x1 "
                       "again: each input counts by its own square."}},
                     yours == 0 ? "In C++, 1 divided by a larger whole number is 0." : hint));
}

void check_largest_rate() {
    check_rate({0, 0, 3},
               "Only b matters for this house: by which factor does a step change the "
               "error, and when is that factor below -1?");
    for (const House& house : {House{6, 2, 15}, {2, 3, 4}, {0.5F, 0.25F, 4}})
        check_rate(house, "All three parameters move the prediction: each by its own input.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"house_behind_step", check_house_behind_step}, {"largest_rate", check_largest_rate}};
}

}  // namespace ddp::test
