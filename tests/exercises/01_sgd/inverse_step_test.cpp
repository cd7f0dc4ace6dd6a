// The exercise inverse_step, beside what the chapter's own model does: its kernels make the steps,
// and find the largest learning rate by trying.
#include "exercises/01_sgd/inverse_step.hpp"

#include <cmath>
#include <cstdio>

#include "01_sgd/house_model.hpp"
#include "tests/exercises/support/tasks.hpp"

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

void check_house(const House& house, const HouseParameters& before, double learning_rate,
                 const std::string& hint) {
    Descent descent(house, before, learning_rate);
    descent.step();
    const House found = house_behind_step(before, descent.parameters(), learning_rate);
    // The parameters are floats: their differences have lost some digits.
    if (!is_near(found.bedrooms, house.bedrooms, 0.02f) ||
        !is_near(found.bathrooms, house.bathrooms, 0.02f) ||
        !is_near(found.price, house.price, 0.1f))
        throw Wrong(text("You say %g bedrooms, %g bathrooms, price %g; the step was made on %g "
                         "bedrooms, %g bathrooms, price %g.\n",
                         static_cast<double>(found.bedrooms), static_cast<double>(found.bathrooms),
                         static_cast<double>(found.price), static_cast<double>(house.bedrooms),
                         static_cast<double>(house.bathrooms), static_cast<double>(house.price)) +
                    hint);
    held();
}

void check_house_behind_step() {
    check_house({6, 2, 15}, {}, 0.125, "All parameters were 0 before the step.");
    check_house({5, 2, 12}, {}, 0.001,
                "The learning rate is different here: a step is learning rate times gradient.");
    check_house({3, 1, 5}, {0.5, 0.25, -1}, 0.01,
                "The parameters were not 0 before the step: what did the model predict?");
    check_house({7, 3, 4}, {2, 1.5, 3}, 0.01, "The model had predicted too much here.");
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
    double converging = 0.005, diverging = 2;
    for (int i = 0; i < 10; i++) {
        const double middle = std::sqrt(converging * diverging);
        (converges(house, middle) ? converging : diverging) = middle;
    }
    return std::sqrt(converging * diverging);
}

void check_rate(const House& house, const std::string& hint) {
    const double predicted = largest_learning_rate(house), measured = measured_rate(house);
    if (!(std::abs(predicted - measured) <= 0.02 * measured))
        throw Wrong(text("A house of %g bedrooms and %g bathrooms: you predict %.4f, and the "
                         "chapter's model converges up to %.4f.\n",
                         static_cast<double>(house.bedrooms), static_cast<double>(house.bathrooms),
                         predicted, measured) +
                    hint);
    held();
}

void check_largest_rate() {
    check_rate({0, 0, 3},
               "Nothing but b is learned here: by which factor does a step change the "
               "error, and when is that factor below -1?");
    check_rate({6, 2, 15}, "All three parameters move the prediction: each by its own input.");
    check_rate({2, 3, 4}, "All three parameters move the prediction: each by its own input.");
    check_rate({2, 3, 40}, "Only the price is different here: does it matter?");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"house_behind_step", check_house_behind_step}, {"largest_rate", check_largest_rate}};
}

}  // namespace ddp::test
