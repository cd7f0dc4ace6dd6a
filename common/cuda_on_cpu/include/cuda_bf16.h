#pragma once
// __nv_bfloat16, the upper half of a float: 1 bit for the sign, 8 for the exponent, 7 for the
// fraction. It reaches as far as a float and keeps 2 to 3 decimal digits. What is here: storage,
// and the way from and to float.
#include <bit>
#include <cstdint>
#include <type_traits>

#include "cuda_on_cpu/outside_half.hpp"

namespace cuda_on_cpu {

// The nearest value; of two equally near ones that whose last bit is 0. No branches: see half_bits.
inline std::uint16_t bfloat16_bits(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
    return static_cast<std::uint16_t>(is_nan ? 0x7fff : rounded);
}

inline float bfloat16_value(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace cuda_on_cpu

struct __nv_bfloat16 {
    __nv_bfloat16() = default;
    __nv_bfloat16(float value) : bits_(cuda_on_cpu::bfloat16_bits(value)) {}
    template <class T>
    requires std::is_arithmetic_v<T> __nv_bfloat16(T) {
        static_assert(sizeof(T) == 0,
                      "__nv_bfloat16 of another type than float is not in the CPU subset of CUDA: "
                      "see common/cuda_on_cpu/README.md for what is");
    }
    operator float() const { return cuda_on_cpu::bfloat16_value(bits_); }

  private:
    std::uint16_t bits_;
};
using nv_bfloat16 = __nv_bfloat16;

inline __nv_bfloat16 __float2bfloat16(float value) {
    return value;
}
inline __nv_bfloat16 __float2bfloat16_rn(float value) {
    return value;
}
inline float __bfloat162float(__nv_bfloat16 value) {
    return value;
}
