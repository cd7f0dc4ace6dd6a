#include <cuda_runtime.h>
int main() {
    cudaGraphAddKernelNode(nullptr, nullptr, nullptr, 0, nullptr);
}
