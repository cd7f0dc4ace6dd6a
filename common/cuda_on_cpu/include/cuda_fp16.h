#pragma once
// __half, the IEEE format of 16 bits: 1 for the sign, 5 for the exponent, 10 for the fraction.
// Largest 65504, smallest normal 2^-14, smallest of all 2^-24. What is here: storage, and the way
// from and to float.
#include <bit>
#include <cstdint>
#include <type_traits>

#include "cuda_on_cpu/outside_half.hpp"

namespace cuda_on_cpu {

// Both ways do the same for every value, without a branch, so that a loop over an array is
// vectorised; g++ 12 does not vectorise its own _Float16.

// The nearest value; of two equally near ones that whose last bit is 0. From 65520 on: infinity.
inline std::uint16_t half_bits(float value) {
    constexpr std::uint32_t bits_of_65536 = 143u << 23, least_exponent = 127 - 14;
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7fffffff;
    // 65536 becomes infinity. (Of std::min and std::max g++ 12 would make branches.)
    const std::uint32_t finite = magnitude < bits_of_65536 ? magnitude : bits_of_65536;
    const std::uint32_t exponent = finite >> 23 > least_exponent ? finite >> 23 : least_exponent;
    // Next to a power of two that is 2^13 times as large, a float has no more bits left than a
    // half: the addition rounds, and the result's last bits are the half's significand.
    const std::uint32_t large = (exponent + 13) << 23;
    const float rounded = std::bit_cast<float>(finite) + std::bit_cast<float>(large);
    const std::uint32_t significand = std::bit_cast<std::uint32_t>(rounded) - large;
    // A normal number's significand begins with a 1 that adds to the exponent.
    const std::uint32_t half = ((exponent - least_exponent) << 10) + significand;
    const auto is_nan = static_cast<std::uint32_t>(magnitude > 0x7f800000);
    return static_cast<std::uint16_t>(half | is_nan << 9 | (bits >> 16 & 0x8000));
}

inline float half_value(std::uint16_t bits) {
    const std::uint32_t magnitude = bits & 0x7fffu;
    const std::uint32_t exponent = magnitude >= 0x0400 ? magnitude >> 10 : 1;
    const std::uint32_t significand = magnitude - ((exponent - 1) << 10);
    const float unit = std::bit_cast<float>((exponent + 127 - 25) << 23);
    const float value = static_cast<float>(static_cast<int>(significand)) * unit;  // exact
    const std::uint32_t infinite = magnitude >= 0x7c00 ? 0x7f800000 : 0;           // or NaN
    const std::uint32_t sign = (bits & 0x8000u) << 16;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | infinite | sign);
}

}  // namespace cuda_on_cpu

struct __half {
    __half() = default;
    __half(float value) : bits_(cuda_on_cpu::half_bits(value)) {}
    template <class T>
    requires std::is_arithmetic_v<T> __half(T) {
        static_assert(sizeof(T) == 0,
                      "__half of another type than float is not in the CPU subset of CUDA: see "
                      "common/cuda_on_cpu/README.md for what is");
    }
    operator float() const { return cuda_on_cpu::half_value(bits_); }

  private:
    std::uint16_t bits_;
};
using half = __half;

inline __half __float2half(float value) {
    return value;
}
inline __half __float2half_rn(float value) {
    return value;
}
inline float __half2float(__half value) {
    return value;
}
