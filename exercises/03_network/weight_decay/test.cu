// The exercise weight_decay, beside the chapter's optimizers, and AdamW beside its formula in
// double.
#include <cmath>
#include <cstdio>
#include <optional>

#include "03_network/optimizers.hpp"
#include "exercises/03_network/weight_decay.hpp"
#include "exercises/support/gate.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

std::string text(const char* format, double a, double b, double c = 0, double d = 0, double e = 0) {
    char line[300];
    std::snprintf(line, sizeof line, format, a, b, c, d, e);
    return line;
}

std::shared_ptr<Parameter> parameter(Device& device, const std::vector<float>& values) {
    return std::make_shared<Parameter>("w",
                                       Tensor(device, {static_cast<int>(values.size())}, values));
}
void set_gradient(Parameter& parameter, const std::vector<float>& gradient) {
    parameter.gradient_for_writing().copy_from(gradient);
}
double number(const Parameter& parameter) {
    return static_cast<double>(parameter.value.to_host()[0]);
}

// Predictions are right to a thousandth of the way that the parameter has really gone.
void compare(const std::string& what, double start, double predicted, double measured,
             const std::string& hint) {
    if (!(std::abs(predicted - measured) <= 1e-3 * std::abs(measured - start) + 1e-6))
        throw Wrong(what +
                    text("it begins at %g, you predict %.6g, and the chapter's optimizer has made "
                         "it %.6g.\n",
                         start, predicted, measured) +
                    hint);
}

// ---- Task sgd

void check_decay(double learning_rate, double momentum, double weight_decay, int steps,
                 const std::string& hint) {
    constexpr double start = 4;
    Device device;
    const auto w = parameter(device, {static_cast<float>(start)});
    Sgd optimizer({w}, learning_rate, momentum, weight_decay);
    std::vector<double> after{start};  // so many steps
    for (int i = 0; i <= steps; i++) {
        set_gradient(*w, {0});
        optimizer.step();
        after.push_back(number(*w));
    }
    const auto n = static_cast<std::size_t>(steps);
    const double predicted = after_sgd(start, learning_rate, momentum, weight_decay, steps);
    const auto is_after = [&](std::size_t k) { return std::abs(predicted - after[k]) <= 1e-4; };
    compare(text("Learning rate %g, momentum %g, weight decay %g, %g steps with a gradient of 0: ",
                 learning_rate, momentum, weight_decay, steps),
            start, predicted, after[n],
            is_after(n + 1)            ? "That is the value one step later."
            : n > 0 && is_after(n - 1) ? "That is the value one step earlier."
                                       : hint);
}

void check_sgd() {
    check_decay(0.1, 0, 0.5, 1, "The decay is added to the gradient: weight_decay * value.");
    check_decay(0.1, 0, 0.5, 7, "Each step takes the same share of what is left.");
    check_decay(0.1, 0.9, 0.5, 0, "The case: no step, so nothing changes.");
    check_decay(0.02, 0.9, 0.25, 30,
                "The decay goes through the velocity as every gradient does: it gains momentum.");
    check_decay(0.3, 0.9, 1, 12, "The case: the momentum carries it beyond 0, and it swings back.");
    check_decay(0.1, 0.9, 0, 5, "The case: no decay, so nothing changes.");
}

// ---- Task adam

void check_first_step(double start, double gradient, double learning_rate, double weight_decay,
                      const std::string& hint) {
    Device device;
    const auto w = parameter(device, {static_cast<float>(start)});
    Adam optimizer({w}, learning_rate, weight_decay);
    set_gradient(*w, {static_cast<float>(gradient)});
    optimizer.step();
    compare(text("Value %g, gradient %g, learning rate %g, weight decay %g: ", start, gradient,
                 learning_rate, weight_decay),
            start, after_first_adam_step(start, gradient, learning_rate, weight_decay), number(*w),
            hint);
}

void check_adam() {
    const std::string length =
        "In the first step both means hold a single gradient, g and g^2, and the factors cancel "
        "out: what is g / sqrt(g^2)?";
    check_first_step(4, 3, 0.125, 0, length);
    check_first_step(4, -0.001, 0.02, 0, length);
    const std::string decay =
        "The decay is a part of g, and g is divided by its own size: what is left of the size?";
    check_first_step(4, 0, 0.125, 0.01, decay);
    check_first_step(-8, 0, 0.125, 0.5, decay);
    check_first_step(4, 3, 0.125, 0.25, decay);
    check_first_step(4, -1, 0.125, 0.5,
                     "The case: the decay is larger than the gradient, and of the opposite sign.");
    check_first_step(
        4, 0, 0.125, 0,
        "The case: gradient and decay are 0, so g is 0, and the step is 0 / (0 + eps).");
}

// ---- Task adamw

// One number, by the formula.
struct RightAdamW {
    double value, mean = 0, square = 0;
    int steps = 0;
    void step(double gradient, double learning_rate, double weight_decay) {
        steps++;
        value -= learning_rate * weight_decay * value;
        mean = Adam::beta1 * mean + (1 - Adam::beta1) * gradient;
        square = Adam::beta2 * square + (1 - Adam::beta2) * gradient * gradient;
        value -= learning_rate * mean / (1 - std::pow(Adam::beta1, steps)) /
                 (std::sqrt(square / (1 - std::pow(Adam::beta2, steps))) + Adam::eps);
    }
};

struct Step {
    std::optional<double> gradient;  // of element 0; the others have more of it
    double learning_rate;
};

void check_steps(const std::vector<Step>& steps, double weight_decay, const std::string& hint) {
    constexpr std::size_t n = 257;
    Device device;
    std::vector<float> values(n), gradients(n);
    std::vector<RightAdamW> right;
    for (std::size_t i = 0; i < n; i++) {
        values[i] = 4.0f - static_cast<float>(i) / 64;
        right.push_back({double{values[i]}});
    }
    const auto w = parameter(device, values);
    const std::unique_ptr<Optimizer> optimizer =
        make_adamw({w}, steps.front().learning_rate, weight_decay);
    for (std::size_t k = 0; k < steps.size(); k++) {
        const Step& step = steps[k];
        optimizer->set_learning_rate(step.learning_rate);
        optimizer->zero_gradients();
        for (std::size_t i = 0; i < n && step.gradient; i++) {
            gradients[i] = static_cast<float>(*step.gradient * (1 + static_cast<double>(i)));
            right[i].step(double{gradients[i]}, step.learning_rate, weight_decay);
        }
        if (step.gradient)
            set_gradient(*w, gradients);
        optimizer->step();
        const std::vector<float> yours = w->value.to_host();
        for (std::size_t i = 0; i < n; i++)
            if (!(std::abs(double{yours[i]} - right[i].value) <= 2e-5))
                throw Wrong("Element " + std::to_string(i) + " of " + std::to_string(n) +
                            text(" is %.6g after step %g with weight decay %g; right is %.6g.\n",
                                 static_cast<double>(yours[i]), static_cast<double>(k + 1),
                                 weight_decay, right[i].value) +
                            hint);
    }
    held();
}

// Two parameters: the first one takes no part.
void check_two_parameters() {
    constexpr double learning_rate = 0.1, weight_decay = 0.5;
    Device device;
    const auto absent = parameter(device, {4}), present = parameter(device, {4});
    const std::unique_ptr<Optimizer> optimizer =
        make_adamw({absent, present}, learning_rate, weight_decay);
    RightAdamW right{4};
    right.step(0.5, learning_rate, weight_decay);
    set_gradient(*present, {0.5});
    optimizer->step();
    if (number(*absent) != 4 || std::abs(number(*present) - right.value) > 2e-5)
        throw Wrong(
            text("Two parameters, and only the second one has a gradient: after a step they "
                 "are %.6g and %.6g; right is 4 and %.6g.\n",
                 number(*absent), number(*present), right.value) +
            "A parameter without a gradient stays as it is; the others still take their step.");
    set_gradient(*absent, {0.5});
    const std::string wrong = wrong_if_host_waits(device.stream(), [&] { optimizer->step(); });
    device.stream().synchronize();
    if (!wrong.empty())
        throw Wrong("A step of two parameters: " + wrong);
    held();
}

// Tests what a resumed training begins with.
void check_state() {
    Device device;
    const auto w = parameter(device, {4});
    const auto optimizer = make_adamw({w}, 0.1, 0.25);
    set_gradient(*w, {0.5});
    optimizer->step();
    const OptimizerState saved = optimizer->state();
    if (saved.tensors.empty() || saved.numbers.empty())
        throw Wrong(
            "Your state() has nothing to save, so a resumed training would begin with empty "
            "means. Adam's means and its count of steps are the memory, and the Adam that you own "
            "has a state().");
    held();
}

void check_adamw() {
    check_steps({{0.5, 0.01}, {-0.25, 0.01}, {0.125, 0.01}}, 0,
                "The case: no decay, so this is Adam alone.");
    check_steps(
        {{0.0, 0.1}}, 0.5,
        "The gradient is 0, and a step takes learning_rate * weight_decay of each value. The "
        "decay must not go through Adam's means, which forget how large it is.");
    check_steps({{0.5, 0.1}, {-0.25, 0.1}, {0.125, 0.1}, {1.0, 0.1}}, 0.25,
                "First the decay, then Adam's step.");
    check_steps(
        {{0.5, 0.1}, {0.5, 0.01}, {0.5, 0.001}, {0.5, 0.1}}, 0.5,
        "The learning rate has changed after the first step: both halves of a step need the new "
        "one.");
    check_steps({{0.5, 0.1}, {std::nullopt, 0.1}, {0.5, 0.1}}, 0.5,
                "In step 2 the parameter has no gradient, so it must stay as it is.");
    check_two_parameters();
    check_state();
}

}  // namespace

std::vector<Task> tasks() {
    return {{"sgd", check_sgd}, {"adam", check_adam}, {"adamw", check_adamw}};
}

}  // namespace ddp::test
