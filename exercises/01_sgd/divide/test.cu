// The exercise divide, on graphs that each ask one question: the gradients beside what calculus
// says, and the order in which they are final beside that in which the tape calls.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "01_sgd/operations.hpp"
#include "exercises/01_sgd/divide.hpp"
#include "exercises/support/gate.hpp"
#include "exercises/support/junk.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Shared = std::shared_ptr<Parameter>;

Shared parameter(Device& device, const std::string& name, const std::vector<float>& values) {
    return std::make_shared<Parameter>(name,
                                       Tensor(device, {static_cast<int>(values.size())}, values));
}

// A number to start backward from, which gives x the gradient `weights`.
Variable weighted_sum(Variable x, const std::vector<float>& weights) {
    float sum = 0;
    const std::vector<float> values = x.value().to_host();
    for (std::size_t i = 0; i < values.size(); i++)
        sum += values[i] * weights[i];
    return x.tape->record("weighted_sum", Tensor(x.tape->device(), {1}, std::vector<float>{sum}),
                          {x}, [weights](const Tensor&, Tape::InputGradients& inputs) {
                              inputs.target(0).tensor.copy_from(weights);
                          });
}

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

const std::string in_fresh_memory =
    "New memory holds junk here, NaN or 4096. Either no thread has written this element: "
    "grid_for(n) may give fewer threads than elements, so loop over grid_range(n). Or your kernel "
    "has added to what was there: if GradientTarget::accumulate is false, it must overwrite.";

void compare(const std::string& what, const Tensor& tensor, const std::vector<double>& right,
             const std::string& hint) {
    const std::vector<float> yours = tensor.to_host();
    std::size_t i = 0;
    while (i < right.size() &&
           std::abs(double{yours[i]} - right[i]) <= 1e-5 * (1 + std::abs(right[i])))
        i++;
    if (i == right.size())
        return held();
    throw Wrong(what + "[" + std::to_string(i) + "] is " + number(static_cast<double>(yours[i])) +
                ", right is " + number(right[i]) + ".\n" +
                (is_junk(yours[i]) ? in_fresh_memory : hint));
}

void compare_gradient(const Shared& parameter, const std::vector<double>& right,
                      const std::string& hint) {
    if (!parameter->has_gradient())
        throw Wrong("The parameter " + parameter->name +
                    " has no gradient after backward: does your function ask for its target?");
    compare("the gradient of " + parameter->name, parameter->gradient(), right, hint);
}

// Throws Wrong if the host waits in `call`, which should only enqueue work.
void check_host(Device& device, const std::string& what, const std::function<void()>& call) {
    const std::string wrong = wrong_if_host_waits(device.stream(), call);
    device.stream().synchronize();
    if (!wrong.empty())
        throw Wrong(what + ": " + wrong);
}

// 1003 elements are no multiple of a block's threads, and more than some grids have.
void check_many() {
    std::vector<float> numerators(1003), denominators(1003);
    std::vector<double> quotients;
    for (std::size_t i = 0; i < numerators.size(); i++) {
        numerators[i] = static_cast<float>(i % 7 + 1);
        denominators[i] = static_cast<float>(i % 5 + 1);
        quotients.push_back(double{numerators[i]} / double{denominators[i]});
    }
    Device device;
    Tape tape(device);
    const Shared a = parameter(device, "a", numerators), b = parameter(device, "b", denominators);
    const Variable x = tape.parameter(a), y = tape.parameter(b);
    spoil_free_memory(device, {1003});
    compare("the quotient", divide(x, y).value(), quotients, "The case: 1003 elements.");
}

// ---- Task forward

void check_forward() {
    Device device;
    Tape tape(device);
    const Variable a = tape.constant(Tensor(device, {2, 3}, std::vector<float>{6, 5, -7, 0, 1, 9}));
    const Variable b = tape.constant(Tensor(device, {2, 3}, std::vector<float>{2, 4, 2, 5, -8, 3}));
    const Variable quotient = divide(a, b);
    if (quotient.value().shape() != Shape{2, 3})
        throw Wrong("[2, 3] divided by [2, 3] has the shape " +
                    to_string(quotient.value().shape()) + ": it should be that of the inputs.");
    compare("the quotient", quotient.value(), {3, 1.25, -3.5, 0, -0.125, 3},
            "Divide each element of a by the one of b at the same place.");
    if (a.value().to_host() != std::vector<float>{6, 5, -7, 0, 1, 9} ||
        b.value().to_host() != std::vector<float>{2, 4, 2, 5, -8, 3})
        throw Wrong(
            "a / b has changed its inputs. A copy of a Tensor is the same memory: the quotient "
            "needs "
            "memory of its own, Tensor quotient(device, shape).");
    const Tape::Node& node = tape.nodes().at(static_cast<std::size_t>(quotient.node));
    if (node.operation != "divide" || node.inputs != std::vector<int>{a.node, b.node})
        throw Wrong("The tape has the operation '" + node.operation +
                    "'; it should have 'divide', with the inputs a and b in this order.");
    try {
        divide(a, tape.constant(Tensor(device, {3, 2}, std::vector<float>(6, 1))));
    } catch (const std::invalid_argument&) {
        check_host(device, "a / b", [&] { divide(a, b); });
        check_many();
        return;
    }
    throw Wrong("[2, 3] divided by [3, 2] must throw std::invalid_argument.");
}

// ---- Task backward

void check_both() {
    Device device;
    Tape tape(device);
    const Shared a = parameter(device, "a", {6, 5, -7, 0, 1}),
                 b = parameter(device, "b", {2, 4, 2, 5, -8});
    const std::vector<float> ones(5, 1), weights{1, -2, 3, 5, 8};
    spoil_free_memory(device, {5});
    tape.backward(weighted_sum(divide(tape.parameter(a), tape.parameter(b)), ones));
    compare_gradient(a, {0.5, 0.25, 0.5, 0.2, -0.125}, "How does a / b change if a changes?");
    compare_gradient(b, {-1.5, -0.3125, 1.75, 0, -0.015625},
                     "How does a / b change if b changes? It is a times 1 / b, and the derivative "
                     "of 1 / b is -1 / b^2.");
    tape.clear();
    a->clear_gradient();
    b->clear_gradient();
    const Variable quotient = divide(tape.parameter(a), tape.parameter(b));
    tape.backward(weighted_sum(quotient, weights));
    const std::string chain =
        "The gradient of the output is not 1 here: the chain rule multiplies by it.";
    compare_gradient(a, {0.5, -0.5, 1.5, 1, -1}, chain);
    compare_gradient(b, {-1.5, 0.625, 5.25, 0, -0.125}, chain);
    compare("The quotient after backward", quotient.value(), {3, 1.25, -3.5, 0, -0.125},
            "Backward must not change a value on the tape.");
    tape.backward(weighted_sum(quotient, ones));
    const std::string again =
        "Backward has run twice: if GradientTarget::accumulate is true, add to what is there. (And "
        "what forward has kept must still be there.)";
    compare_gradient(a, {1, -0.25, 2, 1.2, -1.125}, again);
    compare_gradient(b, {-3, 0.3125, 7, 0, -0.140625}, again);
}

void check_added() {
    Device device;
    Tape tape(device);
    const Shared a = parameter(device, "a", {6}), b = parameter(device, "b", {2});
    const std::string hint =
        "a and b are used twice here: if GradientTarget::accumulate is true, add to what is there.";
    const auto loss = [&] {
        const Variable x = tape.parameter(a), y = tape.parameter(b);
        const Variable quotient = divide(x, y);  // first forward, so backward comes last to it
        return add(quotient, multiply(x, y));
    };
    tape.backward(loss());
    compare_gradient(a, {2.5}, hint);
    compare_gradient(b, {4.5}, hint);
    tape.clear();
    a->clear_gradient();
    const Variable x = tape.parameter(a);
    tape.backward(divide(x, x));
    compare_gradient(a, {0}, "a / a is 1, whatever a is. " + hint);
}

void check_wanted() {
    Device device;
    Tape tape(device);
    const Shared a = parameter(device, "a", {6}), frozen = parameter(device, "frozen", {2});
    frozen->is_frozen = true;
    const std::string hint = ", but it has a gradient: ask is_wanted before target.";
    tape.backward(divide(tape.parameter(a), tape.parameter(frozen)));
    compare_gradient(a, {0.5}, "The case: b is frozen.");
    if (frozen->has_gradient())
        throw Wrong("b is frozen here" + hint);
    tape.clear();
    tape.backward(divide(tape.parameter(frozen), tape.parameter(a)));
    if (frozen->has_gradient())
        throw Wrong("a is frozen here" + hint);
}

void check_host_in_backward() {
    Device device;
    Tape tape(device);
    const Variable quotient = divide(tape.parameter(parameter(device, "a", {6})),
                                     tape.parameter(parameter(device, "b", {2})));
    check_host(device, "backward of a / b", [&] { tape.backward(quotient); });
}

void check_backward() {
    check_both();
    check_added();
    check_wanted();
    check_host_in_backward();
}

// ---- Task final_order

std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names)
        text += (text.empty() ? "" : ", ") + name;
    return text.empty() ? "none" : text;
}

// What the tests of the order are made of: parameters that are single numbers.
struct Graph {
    Device device;
    Tape tape{device};
    Shared u = parameter(device, "u", {2}), v = parameter(device, "v", {3}),
           w = parameter(device, "w", {5});

    void ask(const std::string& formula, Variable loss, const std::string& hint) {
        trying(formula + ": final_order() is called. " + hint);
        const std::vector<std::string> predicted = final_order(tape, loss);
        trying("");
        std::vector<std::string> called;
        tape.backward(loss, [&](Parameter& parameter) { called.push_back(parameter.name); });
        std::string missing;
        for (const std::string& name : called)
            if (std::ranges::find(predicted, name) == predicted.end())
                missing += "You leave out " + name +
                           ", on which the loss depends: through which operations? ";
        if (predicted != called)
            throw Wrong(formula + ": you predict " + joined(predicted) + "; the tape has called " +
                        joined(called) + ".\n" + missing + hint);
    }
};

// A question that has a tape of its own.
void ask(const std::string& formula,
         const std::function<Variable(Graph&, Variable u, Variable v, Variable w)>& loss_of,
         const std::string& hint, const std::string& frozen = "") {
    Graph graph;
    for (const Shared& one : {graph.u, graph.v, graph.w})
        one->is_frozen = one->name == frozen;
    Tape& tape = graph.tape;
    const Variable u = tape.parameter(graph.u), v = tape.parameter(graph.v),
                   w = tape.parameter(graph.w);
    graph.ask(formula, loss_of(graph, u, v, w), hint);
}

void check_final_order() {
    ask(
        "(u v) w",
        [](Graph&, Variable u, Variable v, Variable w) { return multiply(multiply(u, v), w); },
        "Backward begins at the loss, which is the last product, and visits an operation's inputs "
        "in their order.");
    ask(
        "w + (v u)",
        [](Graph&, Variable u, Variable v, Variable w) { return add(w, multiply(v, u)); },
        "The order of the operations counts, not the order in which parameters came to the tape.");
    ask(
        "((u v) w) u",
        [](Graph&, Variable u, Variable v, Variable w) {
            return multiply(multiply(multiply(u, v), w), u);
        },
        "u is used twice. After its use in the last product, is its gradient final?");
    ask(
        "(u u) + v",
        [](Graph&, Variable u, Variable v, Variable) { return add(multiply(u, u), v); },
        "The loss does not depend on w, although it is on the tape; and u is called only once.");
    ask(
        "u v, and then w u",
        [](Graph&, Variable u, Variable v, Variable w) {
            const Variable loss = multiply(u, v);
            multiply(w, u);
            return loss;
        },
        "The loss is not the last node of this tape: what was recorded after it does not count.");
    ask(
        "v u, and then (w v) u",
        [](Graph&, Variable u, Variable v, Variable w) {
            multiply(v, u);
            return multiply(multiply(w, v), u);
        },
        "The loss does not depend on the product that was recorded first: does backward visit it?");
    for (const bool first : {true, false})
        ask(
            first ? "p (w w), where p = u v was recorded first"
                  : "(w w) p, where p = u v was recorded first",
            [&](Graph&, Variable u, Variable v, Variable w) {
                const Variable p = multiply(u, v), q = multiply(w, w);
                return first ? multiply(p, q) : multiply(q, p);
            },
            "The loss depends on two products: which was recorded last? Backward walks along the "
            "record; it does not follow the inputs.");
    ask(
        "(u v) w with v frozen",
        [](Graph&, Variable u, Variable v, Variable w) { return multiply(multiply(u, v), w); },
        "A frozen parameter gets no gradient.", "v");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"forward", check_forward},
            {"backward", check_backward},
            {"final_order", check_final_order}};
}

}  // namespace ddp::test
