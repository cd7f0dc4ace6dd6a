#include <cuda_fp16.h>
__half third() {
    return 1.0 / 3;
}
