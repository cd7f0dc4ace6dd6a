#pragma once
// Ten steps of an optimizer with PyTorch's gradients, and after each of them PyTorch's parameters.
#include <functional>
#include <memory>
#include <string>

#include "01_sgd/sgd.hpp"
#include "tests/support/golden.hpp"

namespace ddp::test {

using MakeOptimizer =
    std::function<std::unique_ptr<Optimizer>(Parameters parameters, const Golden& golden)>;

// Empty if all ten steps of `file` agree; otherwise the first that does not.
std::string optimizer_difference(Device& device, const std::string& file,
                                 const MakeOptimizer& make);

}  // namespace ddp::test
