#pragma once
// Kernels with a mistake, each beside the same one without, for the tests that ask what shows it.
#include <functional>
#include <string>
#include <vector>

namespace ddp::test {

struct Example {
    std::string name;
    std::function<bool()> gives_right;  // runs it; throws GpuError, or ends the process
};

std::vector<Example> mistakes();
std::vector<Example> right_examples();

}  // namespace ddp::test
