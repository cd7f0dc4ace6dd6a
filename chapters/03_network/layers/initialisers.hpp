#pragma once
// How parameters begin. The numbers are those of ddp::Random: the same seed gives the same bits on
// every machine.
#include <memory>
#include <string>

#include "01_sgd/tape.hpp"
#include "common/data/random.hpp"

namespace ddp {

// Within +-gain * sqrt(3 / fan_in), where fan_in inputs feed one output and gain is
// sqrt(2 / (1 + a^2)) (He et al., 2015; a is the slope of a leaky ReLU for negative numbers). What
// flows through a deep network then neither dies out nor blows up. PyTorch's Linear and Conv2d
// begin with a = sqrt(5), which is 1 / sqrt(fan_in).
float kaiming_uniform_bound(int fan_in, double a);

// Independent numbers within +-bound.
Tensor uniform(Device& device, Shape shape, float bound, Random& random);

// A parameter as PyTorch's Linear and Conv2d begin with: within +-1 / sqrt(fan_in).
std::shared_ptr<Parameter> make_parameter(const std::string& name, Device& device, Shape shape,
                                          int fan_in, Random& random);

// Every element the same.
Tensor constant(Device& device, Shape shape, float value);

}  // namespace ddp
