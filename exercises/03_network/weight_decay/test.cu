// The exercise weight_decay, beside the chapter's optimizers, and AdamW beside its formula in
// double.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <thread>

#include "03_network/optimizers.hpp"
#include "exercises/03_network/weight_decay.hpp"
#include "exercises/support/gate.hpp"
#include "exercises/support/launches.hpp"
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
            is_after(n + 1)            ? "That is the value after one step more."
            : n > 0 && is_after(n - 1) ? "That is the value after one step less."
                                       : hint);
}

void check_sgd() {
    check_decay(0.1, 0, 0.5, 1, "The decay is added to the gradient: weight_decay * value.");
    check_decay(0.1, 0, 0.5, 7, "Each step takes the same share of what is still there.");
    check_decay(0.1, 0.9, 0.5, 0, "Without a step nothing changes.");
    check_decay(0.02, 0.9, 0.25, 30,
                "The decay goes through the velocity as every gradient does: it gains momentum.");
    check_decay(0.3, 0.9, 1, 12, "With this momentum it goes beyond 0, and swings back.");
    check_decay(
        0.5, 0.25, 0.5, 6,
        "With these numbers the two roots of a closed formula are equal: it must not divide "
        "by their difference.");
    check_decay(0.1, 0.9, 0, 5, "Without decay nothing changes.");
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
        "In the first step both means hold one gradient only, g and g^2 but for their factors: "
        "what is g / sqrt(g^2)?";
    check_first_step(4, 3, 0.125, 0, length);
    check_first_step(4, -0.001, 0.02, 0, length);
    const std::string decay =
        "The decay is a part of g, which is then divided by its own size: what "
        "is left of how large it is?";
    check_first_step(4, 0, 0.125, 0.01, decay);
    check_first_step(-8, 0, 0.125, 0.5, decay);
    check_first_step(4, 3, 0.125, 0.25, decay);
    check_first_step(4, -1, 0.125, 0.5,
                     "The decay is larger than the gradient here, and of "
                     "the other sign.");
    check_first_step(4, 0, 0.125, 0,
                     "Gradient and decay are both 0, so g is 0: it has no sign, and the step is "
                     "0 / (0 + eps).");
    check_first_step(4, 2e-8, 0.125, 0,
                     "The gradient is as small as Adam::eps, 1e-8, to which its size is added "
                     "before it is divided by it.");
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

// Returns what a value tells that is not `right`, or "", after a step from `before` in which
// `share` of it should have been taken away.
std::string cause_of_step(double yours, double before, double right, double share) {
    const auto is = [&](double wrong) { return std::abs(yours - wrong) <= 2e-5; };
    const double adam = before * (1 - share) - right;
    const std::string where =
        "value.device().stream()? That is where Adam's step runs, and on another stream it comes "
        "too early or too late.\n";
    if (share > 0 && is(before - adam))
        return "Nothing has been taken from the value itself, so far. Has your kernel been "
               "launched, and on " +
               where;
    if (share > 0 && is((before - adam) * (1 - share)))
        return "The decay comes behind Adam's step. Do you call them in the other order? And is "
               "your kernel on " +
               where;
    return "";
}

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
        const std::vector<RightAdamW> before = right;
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
                            cause_of_step(double{yours[i]}, before[i].value, right[i].value,
                                          step.learning_rate * weight_decay) +
                            hint);
    }
    held();
}

// Waits until the value of `w` is `expected` by what others do than the device's stream, which
// stands still; or for 20 ms, if nobody does anything.
void wait_for_others(const Parameter& w, double expected) {
    Stream own;
    float value = 0;
    for (int i = 0; i < 20 && std::abs(double{value} - expected) > 2e-5; i++) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        DDP_CHECK(
            cudaMemcpyAsync(&value, w.value.data(), sizeof value, cudaMemcpyDeviceToHost, own));
        own.synchronize();
    }
}

// Two steps while the device's stream stands still: a decay on another stream comes twice before
// Adam's first step. What is wrong otherwise is told by other checks.
void check_stream() {
    constexpr double learning_rate = 0.1, weight_decay = 0.5, gradient = 0.5;
    constexpr double decayed_twice =
        4 * (1 - learning_rate * weight_decay) * (1 - learning_rate * weight_decay);
    Device device;
    const auto w = parameter(device, {4});
    const std::unique_ptr<Optimizer> optimizer = make_adamw({w}, learning_rate, weight_decay);
    set_gradient(*w, {gradient});
    RightAdamW right{4}, too_early{decayed_twice};
    for (int i = 0; i < 2; i++) {
        right.step(gradient, learning_rate, weight_decay);
        too_early.step(gradient, learning_rate, 0);
    }
    {
        const Gate gate(device.stream());
        optimizer->step();
        optimizer->step();
        wait_for_others(*w, decayed_twice);
    }
    if (std::abs(number(*w) - too_early.value) <= 2e-5)
        throw Wrong(text("Two steps, one right after the other: the parameter is %.6g; right is "
                         "%.6g.\n",
                         number(*w), right.value) +
                    "Is your kernel on value.device().stream()? That is where Adam's step runs, "
                    "and on another stream it comes too early or too late.");
    held();
}

// Two parameters: the first one takes no part.
void check_two_parameters() {
    constexpr double learning_rate = 0.1, weight_decay = 0.5;
    Device device;
    const auto absent = parameter(device, {4}), present = parameter(device, {4});
    const std::unique_ptr<Optimizer> optimizer =
        make_adamw({absent, present}, learning_rate, weight_decay);
    const auto other = make_adamw({parameter(device, {4})}, 1, 0.125);  // it takes no step
    RightAdamW right{4}, later{4};
    right.step(0.5, learning_rate, weight_decay);
    set_gradient(*present, {0.5});
    optimizer->step();
    if (number(*absent) != 4 || std::abs(number(*present) - right.value) > 2e-5)
        throw Wrong(
            text("Two parameters, and only the second one has a gradient: after a step they "
                 "are %.6g and %.6g; right is 4 and %.6g.\n",
                 number(*absent), number(*present), right.value) +
            cause_of_step(number(*present), 4, right.value, learning_rate * weight_decay) +
            "A parameter without a gradient is left alone; the others still take their "
            "step. And there is another optimizer here, with a weight decay of its own.");
    set_gradient(*absent, {0.5});
    const std::string wrong = wrong_if_host_waits(device.stream(), [&] {
        optimizer->step();
        optimizer->step();
    });
    device.stream().synchronize();
    if (!wrong.empty())
        throw Wrong("A step of two parameters: " + wrong);
    for (int i = 0; i < 2; i++)
        for (RightAdamW* each : {&right, &later})
            each->step(0.5, learning_rate, weight_decay);
    if (std::abs(number(*present) - right.value) > 2e-5)
        throw Wrong(
            text("Two steps, one right after the other: the second parameter is %.6g; right is "
                 "%.6g.\n",
                 number(*present), right.value) +
            "One parameter alone takes these steps right: do two of them disturb each other?");
    if (std::abs(number(*absent) - later.value) > 2e-5)
        throw Wrong(text("The first parameter has missed a step and has a gradient in the next "
                         "two: it is %.6g, right is %.6g.\n",
                         number(*absent), later.value) +
                    "It has a gradient for the first time then, and its means begin there: Adam "
                    "counts the steps of each parameter for itself.");
    held();
}

// A training that is saved after three steps and resumed by a new optimizer: state() has all that
// a step depends on. The second of two parameters has no gradient in the first step.
void check_state() {
    constexpr double learning_rate = 0.1, weight_decay = 0.25;
    Device device;
    RightAdamW right[2] = {{4}, {4}};
    const Parameters all{parameter(device, {4}), parameter(device, {4})},
        resumed{parameter(device, {4}), parameter(device, {4})};
    const auto first = make_adamw(all, learning_rate, weight_decay),
               second = make_adamw(resumed, learning_rate, weight_decay);
    const auto step = [&](Optimizer& optimizer, const Parameters& parameters, double gradient,
                          std::size_t learned = 2) {
        for (std::size_t i = 0; i < learned; i++) {
            set_gradient(*parameters[i], {static_cast<float>(gradient)});
            right[i].step(gradient, learning_rate, weight_decay);
        }
        optimizer.step();
    };
    step(*first, all, 0.5, 1);
    step(*first, all, -0.25);
    step(*first, all, 1);
    const OptimizerState saved = first->state(), into = second->state();
    const std::string what = "A training is saved after three steps: ";
    if (saved.tensors.empty() || saved.numbers.empty())
        throw Wrong(what +
                    "by state() your optimizer has nothing to save, and it would begin anew with "
                    "empty means. Adam's means and its count of steps are its memory, and the "
                    "Adam that you own has a state().");
    if (into.tensors.size() != saved.tensors.size() || into.numbers.size() != saved.numbers.size())
        throw Wrong(what + "state() has another number of entries before the first step.");
    for (std::size_t i = 0; i < 2; i++)
        resumed[i]->value.copy_from(all[i]->value.to_host());
    for (std::size_t i = 0; i < saved.tensors.size(); i++)
        Tensor(into.tensors[i].second).copy_from(saved.tensors[i].second.to_host());
    for (std::size_t i = 0; i < saved.numbers.size(); i++)
        *into.numbers[i].second = *saved.numbers[i].second;
    step(*second, resumed, -0.5);
    for (std::size_t i = 0; i < 2; i++)
        if (!(std::abs(number(*resumed[i]) - right[i].value) <= 2e-5))
            throw Wrong(
                what +
                text("resumed, parameter %g of two is at %.6g after the fourth step; right is "
                     "%.6g.\n",
                     static_cast<double>(i + 1), number(*resumed[i]), right[i].value) +
                "What state() returns is the optimizer's own memory, not a copy: whoever "
                "resumes a training writes into it, and the next step goes on from there.");
    held();
}

// Checks that the threads share the elements of a large parameter.
void check_who_steps() {
    Device device;
    const auto w = parameter(device, std::vector<float>(1000, 4));
    const std::unique_ptr<Optimizer> optimizer = make_adamw({w}, 0.1, 0.5);
    set_gradient(*w, std::vector<float>(1000, 0.5));
    check_shares("A step of 1000 elements", {written_by_all("the value", w->value)}, [&] {
        optimizer->step();
        device.stream().synchronize();
    });
}

void check_adamw() {
    check_stream();  // first: on another stream, all else depends on who comes first
    check_steps({{0.5, 0.01}, {-0.25, 0.01}, {0.125, 0.01}}, 0,
                "There is no decay here: this is Adam alone.");
    check_steps(
        {{0.0, 0.1}}, 0.5,
        "The gradient is 0, and a step takes learning_rate * weight_decay of each value. It "
        "is not to go through Adam's means, which forget how large it is.");
    check_steps({{0.5, 0.1}, {-0.25, 0.1}, {0.125, 0.1}, {1.0, 0.1}}, 0.25,
                "First the decay, then Adam's step.");
    check_steps({{0.5, 0.1}, {0.5, 0.01}, {0.5, 0.001}, {0.5, 0.1}}, 0.5,
                "The learning rate has changed after the first step: both halves of a step must "
                "know.");
    check_steps({{0.5, 0.1}, {std::nullopt, 0.1}, {0.5, 0.1}}, 0.5,
                "In step 2 the parameter has no gradient: it took no part, and is left alone.");
    check_two_parameters();
    check_state();
    check_who_steps();
}

}  // namespace

std::vector<Task> tasks() {
    return {{"sgd", check_sgd}, {"adam", check_adam}, {"adamw", check_adamw}};
}

}  // namespace ddp::test
