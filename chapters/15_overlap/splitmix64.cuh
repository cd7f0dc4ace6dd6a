#pragma once
// Random numbers by counting: the i-th number of a sequence, without those before it. Any thread
// can compute any of them, in any order, and so can any rank.
#include <cstdint>

#include "common/gpu/gpu.hpp"

namespace ddp {

// Returns the i-th of the 64-bit numbers that belong to `seed`. (splitmix64 by Vigna, after Steele,
// Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014.)
__host__ __device__ inline std::uint64_t splitmix64(std::uint64_t seed, std::uint64_t i) {
    std::uint64_t bits = seed + (i + 1) * 0x9e3779b97f4a7c15ull;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ull;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebull;
    return bits ^ (bits >> 31);
}

}  // namespace ddp
