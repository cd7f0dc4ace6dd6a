#pragma once
// exp without a library: the same bits on every machine, and a loop of it is vectorised, which a
// loop of expf is not. Softmax over a vocabulary takes millions of them in a step.
//
//     e^x = 2^n e^r    n = x / ln 2, rounded, so |r| = |x - n ln 2| is at most ln 2 / 2 = 0.35
//           2^n        is written straight into the exponent of a float
//           e^r        1 + r + r^2/2! + ... + r^7/7!; what is left out is below 1e-8
#include <cuda_runtime.h>

#include <bit>
#include <cstdint>

namespace ddp {

// Returns e^x for x up to 0 (or a rounding above it), to about 1e-7 of itself, and e^-87 for all
// below -87. A NaN stays a NaN.
__host__ __device__ inline float exponential(float x) {
    // Added to a number between -2^22 and 2^22, this leaves no bits for a fraction: the sum is
    // rounded, and its last bits are the whole number.
    constexpr float rounder = 12582912.0f;  // 1.5 * 2^23
    // ln 2 in two parts: n times the first is exact, so nothing of r is lost.
    constexpr float per_ln2 = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    x = x < -87.0f ? -87.0f : x;
    const float rounded = x * per_ln2 + rounder, n = rounded - rounder;
    const float r = (x - n * ln2_high) - n * ln2_low;
    float series = 1.0f / 5040;
    series = series * r + 1.0f / 720;
    series = series * r + 1.0f / 120;
    series = series * r + 1.0f / 24;
    series = series * r + 1.0f / 6;
    series = series * r + 0.5f;
    series = series * r + 1.0f;
    series = series * r + 1.0f;
    // 2^n: n moves into the exponent, whose zero is 127, and the other bits fall off at the left.
    constexpr std::uint32_t one = 127u << 23;
    return series * std::bit_cast<float>((std::bit_cast<std::uint32_t>(rounded) << 23) + one);
}

}  // namespace ddp
