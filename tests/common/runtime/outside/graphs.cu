#include <cuda_runtime.h>
int main() {
    cudaGraphLaunch(nullptr, nullptr);
}
