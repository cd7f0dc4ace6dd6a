#include <cuda_runtime.h>
__constant__ float weights[4];
