#pragma once
// An all-reduce cuts its data into one chunk for each rank. Chunk c is summed in the order of the
// ring: the elements of rank c + 1 first, then those of c + 2 and so on round to c, which owns it.
// All algorithms here that have chunks keep to this order, so they give the same bits.
#include <cuda_runtime.h>

#include <cstddef>

namespace ddp {

struct Chunk {
    std::size_t begin = 0;  // elements
    std::size_t size = 0;
};

// Chunk `i` of `parts` of `count` elements. All are of one size, which is a multiple of 128 bytes,
// but the last ones, which may be shorter or empty.
__host__ __device__ inline Chunk chunk_of(std::size_t count, std::size_t parts, std::size_t i,
                                          std::size_t element_bytes) {
    const std::size_t unit = 128 / element_bytes;
    const std::size_t size = ((count + parts - 1) / parts + unit - 1) / unit * unit;
    const std::size_t begin = i * size < count ? i * size : count;
    return {begin, begin + size < count ? size : count - begin};
}

}  // namespace ddp
