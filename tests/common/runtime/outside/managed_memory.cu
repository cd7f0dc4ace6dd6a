#include <cuda_runtime.h>
int main() {
    int* data = nullptr;
    cudaMallocManaged(&data, 4);
}
