// The exercise inverse_step, beside what the chapter's own model does: its kernels make the steps,
// and find the largest learning rate by trying.
#include "exercises/01_sgd/inverse_step.hpp"

#include <cmath>
#include <cstdio>

#include "01_sgd/house_model.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

void set(Parameter& parameter, double value) {
    parameter.value.copy_from(std::vector<float>{static_cast<float>(value)});
}
double get(const Parameter& parameter) {
    return static_cast<double>(parameter.value.to_host()[0]);
}

// The model, one house, and steps on it.
class Descent {
  public:
    Descent(const House& house, const HouseParameters& start, double learning_rate)
        : data_(device_, {house}), model_(device_), optimizer_(model_.parameters(), learning_rate) {
        set(*model_.w1, start.w1);
        set(*model_.w2, start.w2);
        set(*model_.b, start.b);
    }
    // Returns the loss before the step.
    double step() {
        Tape tape(device_);
        const Variable loss = model_.loss(tape, data_, 0);
        tape.backward(loss);
        optimizer_.step();
        optimizer_.zero_gradients();
        return static_cast<double>(loss.value().to_host()[0]);
    }
    HouseParameters parameters() const {
        return {get(*model_.w1), get(*model_.w2), get(*model_.b)};
    }

  private:
    Device device_;
    HouseData data_;
    HouseModel model_;
    PlainSgd optimizer_;
};

std::string text(const char* format, double a, double b, double c = 0, double d = 0, double e = 0,
                 double f = 0) {
    char line[300];
    std::snprintf(line, sizeof line, format, a, b, c, d, e, f);
    return line;
}

bool is_near(float yours, float right, float tolerance) {
    return std::abs(yours - right) <= tolerance;
}

// Returns which mistake leads to `found`, or "" if it is none of the usual ones.
std::string cause_of(const House& found, const House& house, const HouseParameters& before,
                     const HouseParameters& after, double learning_rate) {
    const double x1 = house.bedrooms, x2 = house.bathrooms;
    const double predicted = before.w1 * x1 + before.w2 * x2 + before.b,
                 predicted_after = after.w1 * x1 + after.w2 * x2 + after.b;
    const double error = predicted - static_cast<double>(house.price);
    const auto near = [](float yours, double right) {
        return std::abs(static_cast<double>(yours) - right) <= 0.02 + 0.01 * std::abs(right);
    };
    if (near(found.bedrooms, x2) && near(found.bathrooms, x1) && x1 != x2)
        return "Bedrooms and bathrooms are swapped: w1 is the weight of bedrooms.";
    if (near(found.bedrooms, 2 * error * x1) && near(found.bathrooms, 2 * error * x2))
        return "These are the gradients of w1 and w2, 2 e x1 and 2 e x2, not x1 and x2 themselves.";
    if (near(found.bedrooms, -x1) && x1 != 0)
        return "The sign is wrong: a step is parameter -= learning rate * gradient, so the "
               "gradient is (before - after) / learning rate.";
    if (!near(found.bedrooms, x1) || !near(found.bathrooms, x2))
        return "All three gradients have the factor 2 e. What is left if you divide one change by "
               "another?";
    if (near(found.price, predicted - 2 * error))
        return "The gradient of b is 2 e, because the derivative of a square has a factor of 2.";
    if (near(found.price, predicted + error) || near(found.price, predicted + 2 * error))
        return "The sign of e is wrong in the price: e is predicted - price.";
    if (near(found.price, -error))
        return "That is -e alone: what did the model predict? The price is the prediction minus e.";
    if (near(found.price, predicted_after - error))
        return "You have used the parameters after the step, but e is the error before it.";
    if (near(found.price, predicted - error * learning_rate))
        return "A step is the learning rate times the gradient: the learning rate is missing.";
    return "";
}

void check_house(const House& house, const HouseParameters& before, double learning_rate,
                 const std::string& hint) {
    Descent descent(house, before, learning_rate);
    descent.step();
    const House found = house_behind_step(before, descent.parameters(), learning_rate);
    const std::string cause = cause_of(found, house, before, descent.parameters(), learning_rate);
    // The parameters are floats: their differences have lost some digits.
    if (!is_near(found.bedrooms, house.bedrooms, 0.02f) ||
        !is_near(found.bathrooms, house.bathrooms, 0.02f) ||
        !is_near(found.price, house.price, 0.1f))
        throw Wrong(text("You say %g bedrooms, %g bathrooms, price %g; the step was made on %g "
                         "bedrooms, %g bathrooms, price %g.\n",
                         static_cast<double>(found.bedrooms), static_cast<double>(found.bathrooms),
                         static_cast<double>(found.price), static_cast<double>(house.bedrooms),
                         static_cast<double>(house.bathrooms), static_cast<double>(house.price)) +
                    (cause.empty() ? hint : cause));
    held();
}

void check_house_behind_step() {
    check_house({6, 2, 15}, {}, 0.125, "The case: all parameters were 0 before the step.");
    check_house({5, 2, 12}, {}, 0.001, "The case: another learning rate.");
    check_house({3, 1, 5}, {0.5, 0.25, -1}, 0.01,
                "The case: the parameters were not 0 before the step. What did the model predict?");
    check_house({7, 3, 4}, {2, 1.5, 3}, 0.01, "The case: the prediction was too high.");
    check_house({2.5f, 1.25f, 7.25f}, {0.5, 0.25, -1}, 0.01,
                "The case: numbers that are not whole.");
    check_house({0, 2, 3}, {0.5, 0.25, -1}, 0.01,
                "The case: no bedrooms. Which change is never 0, so that you can divide by it?");
    check_house({2, 0, 3}, {0.5, 0.25, -1}, 0.01,
                "The case: no bathrooms. Which change is never 0, so that you can divide by it?");
}

bool converges(const House& house, double learning_rate) {
    Descent descent(house, {}, learning_rate);
    const double first = descent.step();
    double last = first;
    for (int i = 0; i < 20 && std::isfinite(last); i++)
        last = descent.step();
    return last < first;  // NaN is not
}

double measured_rate(const House& house) {
    double converging = 1e-7, diverging = 2;
    for (int i = 0; i < 12; i++) {
        const double middle = std::sqrt(converging * diverging);
        (converges(house, middle) ? converging : diverging) = middle;
    }
    return std::sqrt(converging * diverging);
}

// Returns which mistake leads to `yours`, or "" if it is none of the usual ones.
std::string cause_of(const House& house, double yours) {
    const double x1 = house.bedrooms, x2 = house.bathrooms, squares = x1 * x1 + x2 * x2 + 1;
    const auto near = [&](double rate) { return std::abs(yours - rate) <= 0.001 * rate; };
    if (yours == 0)
        return "It is 0: in C++, 1 divided by a larger whole number is 0. Compute with double.";
    if (near(2 / squares))
        return "That is twice the rate. The gradient has a factor of 2: a step changes the error "
               "by the factor 1 - 2 learning rate (...).";
    if (near(0.5 / squares))
        return "At that rate one step makes the error 0. With a larger one it still shrinks, until "
               "the "
               "factor is -1.";
    if (near(1 / (squares - 1)) && squares > 2)
        return "You have left out b, which is learned as well and moves the prediction.";
    if (near(1 / (x1 + x2 + 1)) || near(1 / ((x1 + x2) * (x1 + x2) + 1)))
        return "w1 changes by a multiple of x1, and that change is multiplied by x1 again in the "
               "prediction: each input counts by its own square.";
    return "";
}

void check_rate(const House& house, const std::string& hint) {
    const double predicted = largest_learning_rate(house), measured = measured_rate(house);
    if (!(std::abs(predicted - measured) <= 0.02 * measured))
        throw Wrong(text("A house of %g bedrooms and %g bathrooms: you predict %.4g, and the "
                         "chapter's model converges up to %.4g.\n",
                         static_cast<double>(house.bedrooms), static_cast<double>(house.bathrooms),
                         predicted, measured) +
                    (cause_of(house, predicted).empty() ? hint : cause_of(house, predicted)));
    held();
}

void check_largest_rate() {
    check_rate(
        {0, 0, 3},
        "Only b matters for this house: by which factor does a step change the error, and when "
        "is that factor below -1?");
    check_rate({6, 2, 15}, "All three parameters move the prediction: each by its own input.");
    check_rate({2, 3, 4}, "All three parameters move the prediction: each by its own input.");
    check_rate({0.5f, 0.25f, 4}, "The case: numbers that are not whole.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"house_behind_step", check_house_behind_step}, {"largest_rate", check_largest_rate}};
}

}  // namespace ddp::test
