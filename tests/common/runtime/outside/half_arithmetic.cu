#include <cuda_fp16.h>
__half twice(__half value) {
    return value + value;
}
