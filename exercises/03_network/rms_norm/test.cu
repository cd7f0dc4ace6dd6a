// The exercise rms_norm, beside the same formula in double: its values, and its slopes by finite
// differences.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "01_sgd/operations.hpp"
#include "exercises/03_network/rms_norm.hpp"
#include "exercises/support/gate.hpp"
#include "exercises/support/junk.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

// A layer's input, and what the loss says of its output: the loss is the sum of y * dy.
struct Case {
    int rows, columns;
    double eps;
    std::vector<double> x, gain, dy;

    std::size_t width() const { return static_cast<std::size_t>(columns); }
    std::size_t size() const { return static_cast<std::size_t>(rows) * width(); }
};

// Values that differ from place to place, within +-2.
double value_at(std::size_t i, std::size_t which) {
    return static_cast<double>((i * 37 + which * 101 + 11) % 64) / 16 - 1.97;
}
Case make_case(int rows, int columns, double eps = 1e-5) {
    Case one{rows, columns, eps, {}, {}, {}};
    for (std::size_t i = 0; i < one.size(); i++) {
        one.x.push_back(value_at(i, 1));
        one.dy.push_back(value_at(i, 2));
    }
    one.gain.assign(one.width(), 1);
    return one;
}
Case with_gain(Case one) {
    for (std::size_t c = 0; c < one.width(); c++)
        one.gain[c] = 0.5 + value_at(c, 3);
    return one;
}

std::vector<double> right_output(const Case& one) {
    std::vector<double> y(one.size());
    for (std::size_t first = 0; first < one.size(); first += one.width()) {
        double squares = 0;
        for (std::size_t c = 0; c < one.width(); c++)
            squares += one.x[first + c] * one.x[first + c];
        const double rms = std::sqrt(squares / one.columns + one.eps);
        for (std::size_t c = 0; c < one.width(); c++)
            y[first + c] = one.gain[c] * one.x[first + c] / rms;
    }
    return y;
}
double loss_of(const Case& one) {
    double loss = 0;
    const std::vector<double> y = right_output(one);
    for (std::size_t i = 0; i < y.size(); i++)
        loss += y[i] * one.dy[i];
    return loss;
}

// How the loss changes with each of these numbers, which are those of `one`.
std::vector<double> slopes(Case& one, std::vector<double>& numbers) {
    constexpr double step = 1e-5;
    std::vector<double> result;
    for (double& number : numbers) {
        const double before = number;
        number = before + step;
        const double above = loss_of(one);
        number = before - step;
        result.push_back((above - loss_of(one)) / (2 * step));
        number = before;
    }
    return result;
}

// ---- The reader's layer

std::vector<float> floats(const std::vector<double>& values) {
    return {values.begin(), values.end()};
}

struct Layer {
    explicit Layer(const Case& one)
        : x(std::make_shared<Parameter>("x",
                                        Tensor(device, {one.rows, one.columns}, floats(one.x)))),
          gain(
              std::make_shared<Parameter>("gain", Tensor(device, {one.columns}, floats(one.gain)))),
          eps(static_cast<float>(one.eps)) {
        spoil_free_memory(device, {one.rows, one.columns});
        spoil_free_memory(device, {one.columns});
    }

    Variable forward() {
        const Variable input = tape.parameter(x);  // node 0; the gain is node 1
        return rms_norm(input, tape.parameter(gain), eps);
    }

    // Gives y the gradient `dy`.
    void backward(Variable y, const std::vector<double>& dy) {
        const Variable loss =
            tape.record("loss", Tensor(device, {1}, std::vector<float>{0}), {y},
                        [dy = floats(dy)](const Tensor&, Tape::InputGradients& inputs) {
                            inputs.target(0).tensor.copy_from(dy);
                        });
        tape.backward(loss);
    }

    Device device;
    Tape tape{device};
    std::shared_ptr<Parameter> x, gain;
    float eps;
};

const std::string in_fresh_memory =
    "New memory holds junk here, NaN or 4096. Either no thread has written this element, or your "
    "kernel has added to what was there: if GradientTarget::accumulate is false, it must "
    "overwrite. (Or is something divided by 0?)";

// Returns the first element that is wrong, or their number.
std::size_t first_wrong(const std::vector<float>& yours, const std::vector<double>& right) {
    double largest = 0;
    for (const double value : right)
        largest = std::max(largest, std::abs(value));
    std::size_t i = 0;
    while (i < right.size() && std::abs(double{yours[i]} - right[i]) <= 1e-6 + 2e-4 * largest)
        i++;
    return i;
}

void compare(const Case& one, const std::string& what, const Tensor& tensor,
             const std::vector<double>& right, const std::string& hint) {
    const std::vector<float> yours = tensor.to_host();
    if (yours.size() != right.size())
        throw Wrong(what + " has " + std::to_string(yours.size()) + " elements, right are " +
                    std::to_string(right.size()) + ".");
    const std::size_t i = first_wrong(yours, right);
    if (i == right.size())
        return;
    char text[200];
    std::snprintf(text, sizeof text, "[%d, %d]: %s, element %d of row %d, is %.5g, right is %.5g.",
                  one.rows, one.columns, what.c_str(), static_cast<int>(i % one.width()),
                  static_cast<int>(i / one.width()), static_cast<double>(yours[i]), right[i]);
    throw Wrong(text + ("\n" + (is_junk(yours[i]) ? in_fresh_memory : hint)));
}

const Tensor& gradient_of(const Parameter& parameter) {
    if (!parameter.has_gradient())
        throw Wrong(parameter.name +
                    " has no gradient after backward: does your function ask for "
                    "its target?");
    return parameter.gradient();
}

// Throws Wrong if the host waits in `call`, which should only enqueue work.
void check_host(Device& device, const std::string& what, const std::function<void()>& call) {
    const std::string wrong = wrong_if_host_waits(device.stream(), call);
    device.stream().synchronize();
    if (!wrong.empty())
        throw Wrong(what + ": " + wrong);
}

void check_host_in_backward(const std::string& what) {
    Layer layer(make_case(1, 1));  // backward begins at a single number
    const Variable y = layer.forward();
    check_host(layer.device, what, [&] { layer.tape.backward(y); });
}

// ---- Task forward

const std::string more_columns =
    "There are more columns than a block has threads: each thread takes several, in a loop.";

void check_output(const Case& one, const std::string& hint) {
    Layer layer(one);
    const Variable y = layer.forward();
    compare(one, "y", y.value(), right_output(one), hint);
    if (y.value().shape() != Shape{one.rows, one.columns})
        throw Wrong("y has the shape " + to_string(y.value().shape()) +
                    "; it should be that of x, " + to_string({one.rows, one.columns}) + ".");
    if (layer.x->value.to_host() != floats(one.x))
        throw Wrong(
            "Forward has changed x. A copy of a Tensor is the same memory: y needs memory of its "
            "own, Tensor y(device, shape).");
    const Tape::Node& node = layer.tape.nodes().at(static_cast<std::size_t>(y.node));
    if (node.operation != "rms_norm" || node.inputs != std::vector<int>{0, 1})
        throw Wrong("The tape has the operation '" + node.operation +
                    "'; it should have 'rms_norm', with the inputs x and gain in this order.");
}

void check_forward() {
    check_output({1, 2, 0, {3, 4}, {1, 1}, {}},
                 "x is (3, 4): the mean of the squares is 12.5, and its root 3.5355.");
    check_output(make_case(5, 7), "Each row has an rms of its own.");
    check_output(with_gain(make_case(3, 33)), "Each column has a gain of its own.");
    Case zeros = make_case(2, 5, 1e-2);
    std::fill(zeros.x.begin(), zeros.x.begin() + 5, 0);
    check_output(
        zeros,
        "The first row is all 0, and eps is 0.01: it is added under the root, so nothing is "
        "divided by 0.");
    check_output(with_gain(make_case(131, 3)), "The case: more rows than columns.");
    check_output(with_gain(make_case(3, 1030)), more_columns);
    Layer layer(make_case(4, 9));
    check_host(layer.device, "y", [&] { layer.forward(); });
}

// ---- Task input_gradient

void check_slopes_of_x(Case one, const std::string& hint) {
    Layer layer(one);
    const Variable y = layer.forward();
    layer.backward(y, one.dy);
    std::vector<double> right = slopes(one, one.x);
    compare(one, "the gradient of x", gradient_of(*layer.x), right, hint);
    layer.backward(y, one.dy);
    for (double& slope : right)
        slope *= 2;
    compare(one, "the gradient of x", gradient_of(*layer.x), right,
            "Backward has run twice: if GradientTarget::accumulate is true, add to what is there. "
            "(And what forward has kept must still be there.)");
}

void check_input_gradient() {
    check_slopes_of_x(
        make_case(1, 2),
        "An element of x changes its own y, and the rms of its row, and with it every "
        "other y of the row: that is a second term.");
    check_slopes_of_x(make_case(4, 9), "Each row has sums of its own: no row changes another one.");
    Case with_zeros = with_gain(make_case(4, 9));
    with_zeros.gain[2] = 0;
    check_slopes_of_x(with_zeros, "The gain is not 1 here: it is a factor of dy in both terms.");
    with_zeros = with_gain(make_case(67, 5, 0.5));
    std::fill(with_zeros.x.end() - 5, with_zeros.x.end(), 0);
    check_slopes_of_x(with_zeros,
                      "eps is 0.5 here, and the last row is all 0: the rms in the gradient is "
                      "that of forward, with eps.");
    check_slopes_of_x(with_gain(make_case(1, 1030)), more_columns);
    Case one = make_case(3, 5);
    Layer frozen(one);
    frozen.x->is_frozen = true;
    frozen.backward(frozen.forward(), one.dy);
    if (frozen.x->has_gradient())
        throw Wrong("x is frozen here, but it has a gradient: ask is_wanted(0) before target(0).");
    check_host_in_backward("the gradient of x");
}

// ---- Task gain_gradient

void check_slopes_of_gain(Case one, const std::string& hint) {
    Layer layer(one);
    layer.backward(layer.forward(), one.dy);
    const std::vector<double> once = slopes(one, one.gain);
    compare(one, "the gradient of gain", gradient_of(*layer.gain), once, hint);
    layer.tape.clear();
    layer.backward(layer.forward(), one.dy);
    std::vector<double> twice = once;
    for (double& slope : twice)
        slope *= 2;
    compare(one, "the gradient of gain", gradient_of(*layer.gain), twice,
            "Backward has run twice: if GradientTarget::accumulate is true, add to what is there.");
}

void check_gain_gradient() {
    check_slopes_of_gain(with_gain(make_case(1, 5)), "How does y change with its gain?");
    check_slopes_of_gain(with_gain(make_case(9, 5)),
                         "A gain is shared by all rows: its gradient is a sum over them.");
    check_slopes_of_gain(with_gain(make_case(2, 1030)), more_columns);
    check_slopes_of_gain(with_gain(make_case(1030, 2)),
                         "The case: more rows than a block has threads.");
    check_slopes_of_gain(with_gain(make_case(9, 5, 0.5)),
                         "eps is 0.5 here: the rms in the gradient is that of forward, with eps.");
    Case one = make_case(3, 5);
    Layer layer(one);
    layer.gain->is_frozen = true;
    layer.backward(layer.forward(), one.dy);
    if (layer.gain->has_gradient())
        throw Wrong(
            "gain is frozen here, but it has a gradient: ask is_wanted(1) before target(1).");
    check_host_in_backward("the gradient of gain");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"forward", check_forward},
            {"input_gradient", check_input_gradient},
            {"gain_gradient", check_gain_gradient}};
}

}  // namespace ddp::test
