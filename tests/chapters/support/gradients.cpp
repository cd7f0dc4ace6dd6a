#include "tests/chapters/support/gradients.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace ddp::test {
namespace {

double weighted(const Tensor& y, const std::vector<float>& weights) {
    const std::vector<float> values = y.to_host();
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); i++)
        sum += double{values[i]} * weights[i];
    return sum;
}

struct Comparison {
    std::vector<double> expected;  // by finite differences
    std::vector<float> found;      // by backward

    void require_equal(const std::string& name, double tolerance) const {
        double largest = 1e-3;
        for (double value : expected)
            largest = std::max(largest, std::abs(value));
        for (std::size_t i = 0; i < expected.size(); i++)
            if (!(std::abs(found[i] - expected[i]) <= tolerance * largest))
                throw std::runtime_error("the gradient of " + name + "[" + std::to_string(i) +
                                         "] is " + std::to_string(found[i]) +
                                         ", and finite differences say " +
                                         std::to_string(expected[i]));
    }
};

}  // namespace

Tensor tensor_of(Device& device, const GoldenTensor& golden) {
    return Tensor(device, Shape(golden.shape.begin(), golden.shape.end()), golden.values);
}

void set_parameters(const Module& layer, const Golden& golden) {
    for (const auto& parameter : layer.parameters()) {
        const std::string name = parameter->name.substr(parameter->name.rfind('.') + 1);
        parameter->value.copy_from(golden.tensor(name).values);
    }
}

std::vector<float> distinct_values(std::size_t size, float range) {
    std::size_t stride = size / 3 * 2 + 1;  // any number without a common divisor jumbles
    while (std::gcd(stride, size) != 1)
        stride++;
    std::vector<float> values(size);
    for (std::size_t i = 0; i < size; i++) {
        const auto place = static_cast<float>(i * stride % size) + 0.25f;
        values[i] = range * (2.0f * place / static_cast<float>(size) - 1.0f);
    }
    return values;
}

std::vector<float> random_weights(std::size_t size) {
    std::vector<float> weights(size);
    for (std::size_t i = 0; i < size; i++)
        weights[i] = 2.0f * golden_unit(99, static_cast<std::uint32_t>(i)) - 1.0f;
    return weights;
}

Variable weighted_sum(Variable y, const std::vector<float>& weights) {
    Device& device = y.tape->device();
    const auto sum = static_cast<float>(weighted(y.value(), weights));
    return y.tape->record("weighted_sum", Tensor(device, {1}, std::vector<float>{sum}), {y},
                          [weights](const Tensor& upstream, Tape::InputGradients& inputs) {
                              if (!inputs.is_wanted(0))
                                  return;
                              GradientTarget target = inputs.target(0);
                              std::vector<float> values(weights.size(), 0.0f);
                              if (target.accumulate)
                                  values = target.tensor.to_host();
                              const float factor = upstream.to_host()[0];
                              for (std::size_t i = 0; i < values.size(); i++)
                                  values[i] += factor * weights[i];
                              target.tensor.copy_from(values);
                          });
}

void require_gradients(Device& device, const Parameters& parameters,
                       const std::function<Variable(Tape&)>& forward, double step,
                       double tolerance) {
    Tape tape(device);
    const Variable y = forward(tape);
    const std::vector<float> weights = random_weights(y.value().size());
    tape.backward(weighted_sum(y, weights));
    const auto loss_with = [&](Tensor value, std::vector<float> values, std::size_t i, double by) {
        values[i] += static_cast<float>(by);
        value.copy_from(values);
        Tape again(device);
        return weighted(forward(again).value(), weights);
    };
    for (const auto& parameter : parameters) {
        const std::vector<float> values = parameter->value.to_host();
        Comparison comparison;
        comparison.found = parameter->gradient().to_host();
        for (std::size_t i = 0; i < values.size(); i++)
            comparison.expected.push_back((loss_with(parameter->value, values, i, step) -
                                           loss_with(parameter->value, values, i, -step)) /
                                          (2 * step));
        parameter->value.copy_from(values);
        comparison.require_equal(parameter->name, tolerance);
    }
}

void require_layer_gradients(Device& device, Module& layer, const Shape& input, double step,
                             double tolerance) {
    const auto x = std::make_shared<Parameter>(
        "input", Tensor(device, input, distinct_values(element_count(input), 2.0f)));
    Parameters all = layer.parameters();
    all.push_back(x);
    require_gradients(
        device, all, [&](Tape& tape) { return layer.forward(tape.parameter(x)); }, step, tolerance);
}

std::string message_of(const std::function<void()>& work) {
    try {
        work();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

}  // namespace ddp::test
