#pragma once
// The first values of parameters. The numbers come from ddp::Random, so the same seed gives the
// same bits on every machine.
#include <memory>
#include <string>

#include "01_sgd/tape.hpp"
#include "common/data/random.hpp"

namespace ddp {

// Returns the bound of the uniform distribution that He et al. (2015) propose,
// gain * sqrt(3 / fan_in) with gain = sqrt(2 / (1 + a^2)): values then neither vanish nor explode
// on their way through a deep network. `fan_in` inputs feed one output; `a` is the slope of a leaky
// ReLU for negative numbers. PyTorch's Linear and Conv2d use a = sqrt(5), which gives 1 /
// sqrt(fan_in).
float kaiming_uniform_bound(int fan_in, double a);

// Returns a tensor of independent random numbers from -bound to bound.
Tensor uniform(Device& device, Shape shape, float bound, Random& random);

// Makes a parameter with the first values of PyTorch's Linear and Conv2d: uniform between
// -1 / sqrt(fan_in) and 1 / sqrt(fan_in).
std::shared_ptr<Parameter> make_parameter(const std::string& name, Device& device, Shape shape,
                                          int fan_in, Random& random);

// Returns a tensor in which every element is `value`.
Tensor constant(Device& device, Shape shape, float value);

}  // namespace ddp
