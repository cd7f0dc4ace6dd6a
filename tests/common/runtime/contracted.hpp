#pragma once
// The same function as a kernel that is compiled with CUDA_ON_CPU_CONTRACT, and as host code.
#include <vector>

namespace ddp::test {

// Return values[0] * values[1] + values[2]: from the kernel, and from the host.
float contracted_product_and_sum(const std::vector<float>& values);
float product_and_sum(const std::vector<float>& values);

// Returns whether these files are compiled for a processor that has the operation.
bool has_fused_multiply_add();

}  // namespace ddp::test
