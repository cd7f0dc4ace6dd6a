#include <cuda_bf16.h>
__nv_bfloat162* pairs = nullptr;
