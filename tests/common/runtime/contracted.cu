#include "tests/common/runtime/contracted.hpp"

#include "common/gpu/gpu.hpp"

namespace ddp::test {
namespace {

__host__ __device__ inline float multiply_and_add(const float* values) {
    return values[0] * values[1] + values[2];
}
__global__ void multiply_and_add_kernel(const float* values, float* result) {
    *result = multiply_and_add(values);
}

}  // namespace

float contracted_product_and_sum(const std::vector<float>& values) {
    Buffer<float> in(values), out(1);
    Stream stream;
    launch(stream, {1, 1}, multiply_and_add_kernel, in.data(), out.data());
    stream.synchronize();
    return out.to_host_now()[0];
}

float product_and_sum(const std::vector<float>& values) {
    return multiply_and_add(values.data());
}

bool has_fused_multiply_add() {
#if defined(__FMA__) || defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

}  // namespace ddp::test
