#pragma once
// Parts of one allocation that a program hands out as if each were an allocation: a pool of memory.
// A kernel that writes past such a part damages its neighbour, and no border of CUDA's is touched.
#include <cstddef>

#include "cuda_on_cpu/types.hpp"

namespace cuda_on_cpu {

// The bytes behind each part that strict mode looks at after every kernel. Nobody may use them.
inline constexpr std::size_t zone_behind_part = 128;

// Says that the call at `where` was given the first `bytes` of the part of `room` bytes at `begin`,
// and that nobody uses the zone behind its room. From now on a write to the zone is an error of the
// kernel, and messages about addresses in the part name the call. A later call for the same `begin`
// replaces this one; with its allocation the part is forgotten.
void name_part(void* begin, std::size_t bytes, std::size_t room, Where where);

}  // namespace cuda_on_cpu
