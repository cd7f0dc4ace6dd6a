// The tape: derivatives, the order of visits, and gradients that add up or are absent.
#include <algorithm>

#include "01_sgd/operations.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Shared = std::shared_ptr<Parameter>;

Shared make(Device& device, const std::string& name, const std::vector<float>& values) {
    return std::make_shared<Parameter>(name,
                                       Tensor(device, {static_cast<int>(values.size())}, values));
}

std::vector<std::string> names_of(const Parameters& parameters) {
    std::vector<std::string> names;
    for (const Shared& parameter : parameters)
        names.push_back(parameter->name);
    return names;
}

// loss = ((a * b) + c)^2 for one number each.
Variable chain(Tape& tape, const Shared& a, const Shared& b, const Shared& c) {
    return square(add(multiply(tape.parameter(a), tape.parameter(b)), tape.parameter(c)));
}

}  // namespace

TEST_CASE("tape: the operations' derivatives agree with finite differences") {
    Device device;
    const Shared a = make(device, "a", distinct_values(7, 2.0f));
    const Shared b = make(device, "b", random_weights(7));
    const auto check = [&](const std::function<Variable(Variable, Variable)>& operation) {
        a->clear_gradient(), b->clear_gradient();
        return message_of([&] {
            require_gradients(device, {a, b}, [&](Tape& tape) {
                return operation(tape.parameter(a), tape.parameter(b));
            });
        });
    };
    REQUIRE(check(multiply) == "");
    REQUIRE(check(add) == "");
    REQUIRE(check(subtract) == "");
    REQUIRE(check([](Variable x, Variable y) { return add(square(x), square(y)); }) == "");
    REQUIRE(check([](Variable x, Variable y) { return multiply(multiply(x, y), x); }) == "");
    Tape tape(device);
    REQUIRE(message_of([&] { multiply(tape.parameter(a), tape.constant(Tensor(device, {3}))); }) ==
            "multiply needs two tensors of one shape, not [7] and [3]");
}

TEST_CASE("tape: gradients of a known graph, and none before") {
    Device device;
    const Shared a = make(device, "a", {3}), b = make(device, "b", {5}), c = make(device, "c", {2});
    REQUIRE_FALSE(a->has_gradient());
    REQUIRE(message_of([&] { a->gradient(); }) ==
            "parameter 'a' has no gradient: no backward pass has reached it since the last "
            "clear_gradient()");
    Tape tape(device);
    const Variable loss = chain(tape, a, b, c);
    REQUIRE(loss.value().to_host() == std::vector<float>{289});
    tape.backward(loss);
    REQUIRE(a->gradient().to_host() == std::vector<float>{2 * 17 * 5});
    REQUIRE(b->gradient().to_host() == std::vector<float>{2 * 17 * 3});
    REQUIRE(c->gradient().to_host() == std::vector<float>{2 * 17});
    a->clear_gradient();
    REQUIRE_FALSE(a->has_gradient());
    REQUIRE(message_of([&] { a->gradient(); }) != "");
}

TEST_CASE("tape: each parameter is visited once, in backward's order, when its gradient is final") {
    Device device;
    const Shared a = make(device, "a", {3}), b = make(device, "b", {5}), c = make(device, "c", {2});
    Tape tape(device);
    std::vector<std::string> visited;
    std::vector<float> seen;
    tape.backward(chain(tape, a, b, c), [&](Parameter& parameter) {
        visited.push_back(parameter.name);
        seen.push_back(parameter.gradient().to_host()[0]);
    });
    REQUIRE(visited == std::vector<std::string>{"c", "a", "b"});
    REQUIRE(seen == std::vector<float>{34, 170, 102});  // the final ones, already then
}

TEST_CASE("tape: a tied parameter is one leaf, visited when both uses have contributed") {
    Device device;
    const Shared w = make(device, "w", {3}), v = make(device, "v", {7});
    Tape tape(device);
    const Variable leaf = tape.parameter(w);
    const Variable early = multiply(leaf, tape.parameter(v));          // 21
    const Variable loss = square(multiply(early, tape.parameter(w)));  // (v w^2)^2
    REQUIRE(std::count_if(tape.nodes().begin(), tape.nodes().end(),
                          [](const Tape::Node& node) { return node.parameter != nullptr; }) == 2);
    REQUIRE(names_of(tape.parameters_behind({loss})) == std::vector<std::string>{"w", "v"});
    std::vector<std::string> visited;
    float at_visit = 0;
    tape.backward(loss, [&](Parameter& parameter) {
        visited.push_back(parameter.name);
        if (parameter.name == "w")
            at_visit = parameter.gradient().to_host()[0];
    });
    REQUIRE(visited == std::vector<std::string>{"w", "v"});
    REQUIRE(at_visit == 2 * 63 * 2 * 7 * 3);  // 2 (v w^2) * 2 v w
    REQUIRE(w->gradient().to_host() == std::vector<float>{at_visit});
}

TEST_CASE("tape: a frozen parameter is passed over, and what only it feeds") {
    Device device;
    const Shared a = make(device, "a", {3}), b = make(device, "b", {5}), c = make(device, "c", {2});
    a->is_frozen = b->is_frozen = true;
    Tape tape(device);
    const Variable loss = chain(tape, a, b, c);
    std::vector<std::string> visited;
    tape.retain_gradients();
    tape.backward(loss, [&](Parameter& parameter) { visited.push_back(parameter.name); });
    REQUIRE(visited == std::vector<std::string>{"c"});
    REQUIRE_FALSE(a->has_gradient());
    REQUIRE(c->gradient().to_host() == std::vector<float>{34});
    REQUIRE(names_of(tape.parameters_behind({loss})) == std::vector<std::string>{"c"});
    for (const Tape::Node& node : tape.nodes())
        REQUIRE(node.gradient.is_empty() ==
                (node.operation == "multiply" || node.operation == "a" || node.operation == "b"));
}

TEST_CASE("tape: gradients of two backward passes add up, each with its scale") {
    Device device;
    const Shared a = make(device, "a", {3}), b = make(device, "b", {5}), c = make(device, "c", {2});
    Tape tape(device);
    tape.backward(chain(tape, a, b, c));
    tape.clear();
    tape.backward(chain(tape, a, b, c), {}, 0.5f);
    REQUIRE(a->gradient().to_host() == std::vector<float>{1.5f * 170});
    REQUIRE(b->gradient().to_host() == std::vector<float>{1.5f * 102});
    REQUIRE(c->gradient().to_host() == std::vector<float>{1.5f * 34});
}

TEST_CASE("tape: a branch that is not taken is neither visited nor given a gradient") {
    Device device;
    const Shared a = make(device, "a", {3}), b = make(device, "b", {5}), c = make(device, "c", {2});
    Tape tape(device);
    const Variable loss = square(tape.parameter(a));
    const Variable unused = multiply(tape.parameter(b), tape.parameter(a));  // recorded, no result
    REQUIRE(names_of(tape.parameters_behind({loss})) == std::vector<std::string>{"a"});
    REQUIRE(names_of(tape.parameters_behind({unused})) == std::vector<std::string>{"a", "b"});
    REQUIRE(names_of(tape.parameters_behind({unused, loss})) == std::vector<std::string>{"a", "b"});
    std::vector<std::string> visited;
    tape.backward(loss, [&](Parameter& parameter) { visited.push_back(parameter.name); });
    REQUIRE(visited == std::vector<std::string>{"a"});
    REQUIRE(a->gradient().to_host() == std::vector<float>{6});
    REQUIRE_FALSE(b->has_gradient());
    REQUIRE_FALSE(c->has_gradient());
}

TEST_CASE("tape: gradients can be placed in a tensor of the caller's") {
    Device device;
    const Shared a = make(device, "a", {3, 4}), b = make(device, "b", {5, 6, 7});
    Tensor flat(device, {6}, std::vector<float>{-1, -2, -3, -4, -5, -6});
    b->place_gradient(flat.view(0, {3}));
    a->place_gradient(flat.view(3, {2}));
    REQUIRE_FALSE(a->has_gradient());
    Tape tape(device);
    tape.backward(weighted_sum(square(tape.parameter(a)), {1, 10}));
    tape.backward(weighted_sum(square(tape.parameter(b)), {1, 1, 1}));
    REQUIRE(flat.to_host() == std::vector<float>{10, 12, 14, 6, 80, -6});
    tape.clear();
    tape.backward(weighted_sum(square(tape.parameter(a)), {1, 10}));
    REQUIRE(flat.to_host() == std::vector<float>{10, 12, 14, 12, 160, -6});
    a->clear_gradient();
    tape.clear();
    tape.backward(weighted_sum(square(tape.parameter(a)), {1, 1}));
    REQUIRE(flat.to_host() == std::vector<float>{10, 12, 14, 6, 8, -6});
    REQUIRE(message_of([&] { a->place_gradient(flat.view(0, {3})); }) ==
            "the gradient of 'a' [2] does not fit into memory of [3]");
}

TEST_CASE("tape: backward starts from one number") {
    Device device;
    const Shared a = make(device, "a", {3, 4});
    Tape tape(device);
    const Variable y = square(tape.parameter(a));
    REQUIRE(message_of([&] { tape.backward(y); }) ==
            "backward starts from one number, a loss; this has the shape [2]");
    const Tensor one(device, {1}, std::vector<float>{1});
    tape.backward(tape.constant(one));  // depends on nothing
    REQUIRE_FALSE(a->has_gradient());
}

TEST_CASE("tape: an operation whose backward leaves a wanted gradient out is named") {
    Device device;
    const Shared a = make(device, "a", {3}), b = make(device, "b", {4});
    Tape tape(device);
    const Variable product = multiply(tape.parameter(a), tape.parameter(b));
    // Like product + its second input, but the gradient of that one is forgotten.
    const auto mine = [&](Variable second) {
        return tape.record("mine", product.value(), {product, second},
                           [](const Tensor& upstream, Tape::InputGradients& inputs) {
                               Tensor target = inputs.target(0).tensor;
                               fill(target, upstream.to_host()[0]);
                           });
    };
    const auto c = make(device, "c", {5});
    REQUIRE(
        message_of([&] { tape.backward(mine(tape.parameter(c))); }) ==
        "the backward of 'mine' has not written the gradient of its input 1, 'c': it must write "
        "to target(1) where that is wanted");
    REQUIRE(message_of([&] { tape.backward(mine(square(tape.parameter(c)))); }) ==
            "the backward of 'mine' has not written the gradient of its input 1: it must write to "
            "target(1) where that is wanted");
    tape.backward(mine(tape.constant(Tensor(device, {1}))));  // nobody wants it
}

TEST_CASE("tape: backward begins with the scale that it is given, which is written only once") {
    Device device;
    const Shared a = make(device, "a", {3});
    Tape tape(device);
    tape.retain_gradients();
    std::vector<Tensor> first;
    std::vector<float> gradients;
    for (const float scale : {1.0f, 1.0f, 0.5f, 1.0f}) {
        const Variable loss = square(tape.parameter(a));
        a->clear_gradient();
        tape.backward(loss, {}, scale);
        first.push_back(tape.nodes().at(loss.node).gradient);
        gradients.push_back(a->gradient().to_host()[0]);
        tape.clear();
    }
    REQUIRE(gradients == std::vector<float>{6, 6, 3, 6});
    // One that is kept stays as it was when another scale came.
    for (std::size_t i = 0; i < first.size(); i++)
        REQUIRE(first[i].to_host() == std::vector<float>{i == 2 ? 0.5f : 1.0f});
    REQUIRE(first[0].data() == first[1].data());
    REQUIRE(first[1].data() != first[2].data());
}

TEST_CASE("a tape that does not record: the same values, no boxes, less memory, and no backward") {
    Device device;
    constexpr std::size_t size = 1000, bytes = 4096;  // 4,000, in units of 512
    const Shared a = make(device, "a", std::vector<float>(size, 0.5f));
    struct Run {
        std::vector<float> values;
        std::size_t boxes, peak_bytes;
    };
    const auto run = [&](Recording recording) -> Run {
        Tape tape(device, recording);
        const std::size_t before = device.memory().live_bytes;
        std::size_t peak = 0;
        device.observe_memory(
            [&](const Device::Memory& now) { peak = std::max(peak, now.live_bytes); });
        Variable x = tape.constant(a->value);
        for (int i = 0; i < 10; i++)
            x = add(tape.parameter(a), square(x));
        device.observe_memory({});
        return {x.value().to_host(), tape.nodes().size(), peak - before};
    };
    const Run on = run(Recording::on), off = run(Recording::off);
    REQUIRE(on.values == off.values);
    REQUIRE(on.boxes == 1 + 1 + 2 * 10);
    REQUIRE(off.boxes == 0);
    REQUIRE(on.peak_bytes == 20 * bytes);
    REQUIRE(off.peak_bytes == 3 * bytes);

    Tape tape(device, Recording::off);
    const Variable loss = weighted_sum(tape.parameter(a), std::vector<float>(size, 1));
    REQUIRE(loss.value().to_host() == std::vector<float>{500});
    REQUIRE(tape.parameters_behind({loss}).empty());
    REQUIRE(message_of([&] { tape.backward(loss); }) ==
            "backward needs what forward has recorded, and this loss was computed on a tape that "
            "does not record (Recording::off)");
    REQUIRE_FALSE(a->has_gradient());
}

}  // namespace ddp::test
