#pragma once
// What tests of operations and layers share: data, a loss to start backward from, and finite
// differences.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "01_sgd/tape.hpp"
#include "03_network/layer.hpp"
#include "tests/support/golden.hpp"

namespace ddp::test {

// A golden file's tensor in device memory.
Tensor tensor_of(Device& device, const GoldenTensor& golden);

// Golden layers begin with golden parameters: sets each to the tensor of its name behind the dot.
void set_parameters(const Module& layer, const Golden& golden);

// `size` different numbers within +-range, 2 * range / size apart and none at 0, in a jumbled
// order.
std::vector<float> distinct_values(std::size_t size, float range);

// Numbers within +-1 that have nothing to do with the above.
std::vector<float> random_weights(std::size_t size);

// The sum of y * weights, recorded on y's tape: backward gives y the gradient `weights`.
Variable weighted_sum(Variable y, const std::vector<float>& weights);

// Throws std::runtime_error with one sentence unless backward agrees with central differences of
// `step` for each element of each of `parameters`. `forward` is one output, any shape; it is called
// again and again. Gradients must agree to `tolerance` of the largest of their parameter.
void require_gradients(Device& device, const Parameters& parameters,
                       const std::function<Variable(Tape&)>& forward, double step = 1e-2,
                       double tolerance = 2e-3);

// The same for a layer, its parameters and its input of that shape.
void require_layer_gradients(Device& device, Module& layer, const Shape& input, double step = 1e-2,
                             double tolerance = 2e-3);

// The message of what `work` throws; empty if it does not.
std::string message_of(const std::function<void()>& work);

}  // namespace ddp::test
