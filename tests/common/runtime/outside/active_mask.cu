#include <cuda_runtime.h>
__global__ void kernel(unsigned int* mask) {
    *mask = __activemask();
}
