#pragma once
// Memory that a program hands out in parts of one allocation. On a CPU, CUDA_ON_CPU=strict looks
// behind each part as if cudaMalloc had given it; a GPU does not.
#include <algorithm>
#include <cstddef>

#include "common/gpu/check.hpp"
#if !defined(DDP_CUDA)
#include <cuda_on_cpu/parts.hpp>
#include <cuda_on_cpu/settings.hpp>
#endif

namespace ddp {

// Returns how many of `unit` bytes are to stay free behind each part: all, or none if nothing looks
// there.
inline std::size_t gap_behind_parts(std::size_t unit) {
#if defined(DDP_CUDA)
    (void)unit;
    return 0;
#else
    return cuda_on_cpu::settings().strict ? std::max(unit, cuda_on_cpu::zone_behind_part) : 0;
#endif
}

// Says that `where` was given `bytes` of the part of `room` bytes at `begin`, behind which such a
// gap is.
inline void name_part(void* begin, std::size_t bytes, std::size_t room, Where where) {
#if defined(DDP_CUDA)
    (void)begin, (void)bytes, (void)room, (void)where;
#else
    cuda_on_cpu::name_part(begin, bytes, room, where);
#endif
}

}  // namespace ddp
