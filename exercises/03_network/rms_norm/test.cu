// The exercise rms_norm: three cases whose values and slopes are known, and one of them repeated.
#include <array>
#include <cmath>
#include <utility>

#include "exercises/03_network/rms_norm.hpp"
#include "exercises/support/junk.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Values = std::vector<float>;
const std::array names = {"y", "the gradient of x", "the gradient of gain"};

// The loss is the sum of y * dy. Slopes are finite differences with 60 digits.
struct Case {
    std::size_t rows, columns;
    float eps;
    Values x, gain, dy;
    std::array<Values, 3> right;
    std::array<std::string, 3> hints;
};

const std::vector<Case> cases = {
    {.rows = 1,
     .columns = 2,
     .eps = 0,
     .x = {3, 4},
     .gain = {1, 1},
     .dy = {1, 3},
     .right = {{{0.848528, 1.13137}, {-0.226274, 0.169706}, {0.848528, 3.39411}}},
     .hints = {"The mean of the squares is 12.5, and its root 3.5355.",
               "An element of x changes its own y, and the rms of its row, and with it every other "
               "y of the row: that is a second term.",
               "How does y change with its gain?"}},
    {.rows = 2,
     .columns = 3,
     .eps = 0,
     .x = {1, -2, 3, 4, 0.5, -1},
     .gain = {0.5, -1, 2},
     .dy = {1, 2, -1, 0.5, -3, 1},
     .right = {{{0.231455, 0.92582, 2.77746, 0.834058, -0.208514, -0.834058},
                {0.281053, -1.02502, -0.777028, 0.055906, 1.24504, 0.846145},
                {1.29697, -2.47718, -1.80576}}},
     .hints = {"Each row has an rms of its own, and each column a gain.",
               "The gain is not 1 here: it is a factor of dy in both terms.",
               "A gain is shared by all rows: its gradient is a sum over them."}},
    {.rows = 2,
     .columns = 3,
     .eps = 0.5,
     .x = {0, 0, 0, 2, 1, -3},
     .gain = {0.5, -1, 2},
     .dy = {1, 2, -1, 0.5, -3, 1},
     .right = {{{0, 0, 0, 0.439941, -0.439941, -2.63965},
                {0.707107, -2.82843, -2.82843, 0.251902, 1.39078, 0.667008},
                {0.439941, -1.31982, -1.31982}}},
     .hints =
         {"eps is 0.5 here: it is added under the root, so a row of zeros is not divided by 0.",
          "eps is 0.5 here: the rms is that of forward, with eps.",
          "eps is 0.5 here: the rms is that of forward, with eps."}},
};

// Returns the case with as many copies of its rows, and of its columns.
Case repeated(Case one, std::size_t down, std::size_t across) {
    const auto repeat = [&](Values& values, std::size_t rows) {
        const Values before = std::exchange(values, {});
        for (std::size_t i = 0; i < rows * one.columns * across; i++)
            values.push_back(
                before[i / (one.columns * across) * one.columns % before.size() + i % one.columns]);
    };
    for (Values* values : {&one.x, &one.dy, &one.right[0], &one.right[1]})
        repeat(*values, one.rows * down);
    for (Values* values : {&one.gain, &one.right[2]})
        repeat(*values, 1);
    for (float& slope : one.right[2])
        slope *= static_cast<float>(down);
    one.rows *= down;
    one.columns *= across;
    one.hints.fill("Here are more rows or columns than a block has threads: is one left out?");
    return one;
}

void compare(const Case& one, std::size_t task, float backwards, const Tensor& tensor,
             const std::string& hint) {
    const Values yours = tensor.to_host();
    const Values& right = one.right.at(task);
    const std::string what = std::to_string(one.rows) + " rows, " + std::to_string(one.columns) +
                             " columns: " + names.at(task);
    if (yours.size() != right.size())
        throw Wrong(what + " has " + std::to_string(yours.size()) + " elements, not " +
                    std::to_string(right.size()) + ".");
    for (std::size_t i = 0; i < right.size(); i++) {
        const float expected = backwards * right[i];
        if (!(std::abs(yours[i] - expected) <= 2e-4F * (1 + std::abs(expected))))
            throw Wrong(what + ", row " + std::to_string(i / one.columns) + ", column " +
                        std::to_string(i % one.columns) + ", is " + std::to_string(yours[i]) +
                        ", and right is " + std::to_string(expected) + ".\n" +
                        (is_junk(yours[i])
                             ? "New memory holds junk here: no thread has written this element, "
                               "or your kernel adds where accumulate is false (or divides by 0)."
                             : hint));
    }
}

// Checks y, if it is task 0, or the gradient of x or of gain, after one and two backwards.
void check(const Case& one, std::size_t task) {
    Device device;
    Tape tape(device);
    const int rows = static_cast<int>(one.rows), columns = static_cast<int>(one.columns);
    const auto x = std::make_shared<Parameter>("x", Tensor(device, {rows, columns}, one.x));
    const auto gain = std::make_shared<Parameter>("gain", Tensor(device, {columns}, one.gain));
    spoil_free_memory(device, {rows, columns});
    spoil_free_memory(device, {columns});
    const Variable input = tape.parameter(x);  // node 0; the gain is node 1
    const Variable y = rms_norm(input, tape.parameter(gain), one.eps);
    const Tape::Node& node = tape.nodes().at(static_cast<std::size_t>(y.node));
    if (node.operation != "rms_norm" || node.inputs != std::vector<int>{0, 1})
        throw Wrong("The tape must record 'rms_norm', with the inputs x and gain in this order.");
    if (task == 0)
        return compare(one, task, 1, y.value(), one.hints[0]);
    const Variable last = tape.record(
        "loss", Tensor(device, {1}, Values{0}), {y},
        [&](const Tensor&, auto& inputs) { inputs.target(0).tensor.copy_from(one.dy); });
    const Parameter& parameter = task == 1 ? *x : *gain;
    tape.backward(last);
    if (!parameter.has_gradient())
        throw Wrong(parameter.name + " has no gradient: does backward ask for its target()?");
    compare(one, task, 1, parameter.gradient(), one.hints.at(task));
    tape.backward(last);
    compare(one, task, 2, parameter.gradient(),
            "Backward has run twice: if GradientTarget::accumulate is true, add to what is there.");
}

void check_all(std::size_t task) {
    for (const Case& one : cases)
        check(one, task);
    check(repeated(cases[1], 1, 350), task);
    check(repeated(cases[1], 550, 1), task);
}

}  // namespace

std::vector<Task> tasks() {
    return {{"forward", [] { check_all(0); }},
            {"input_gradient", [] { check_all(1); }},
            {"gain_gradient", [] { check_all(2); }}};
}

}  // namespace ddp::test
