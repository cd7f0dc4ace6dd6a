// What the subset of CUDA leaves out: compiled with -D NAME it must fail, at this name's lines.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#if defined(managed_memory)
int* data = nullptr;
auto status = cudaMallocManaged(&data, 4);
#elif defined(graphs)
auto status = cudaGraphAddKernelNode(nullptr, nullptr, nullptr, 0, nullptr);
#elif defined(active_mask)
__global__ void kernel(unsigned int* mask) {
    *mask = __activemask();
}
#elif defined(cooperative_groups)
#include <cooperative_groups.h>
#elif defined(constant_memory)
__constant__ float weights[4];
#elif defined(half_arithmetic)
__half twice(__half value) {
    return value + value;
}
#elif defined(half_functions)
__half twice(__half value) {
    return __hadd(value, value);
}
#elif defined(half_of_double)
__half third = 1.0 / 3;
#elif defined(bfloat16_pairs)
__nv_bfloat162* pairs = nullptr;
#endif
