#pragma once
// exp without a library: the same bits on every machine, and a loop of it is vectorised, which a
// call of expf is not. Softmax over a vocabulary has millions of them in a step.
//
//     e^x = 2^n e^r    n = x / ln 2, rounded, so |r| = |x - n ln 2| is at most ln 2 / 2 = 0.35
//           2^n        is written straight into the exponent of a float
//           e^r        1 + r + r^2/2! + ... + r^7/7!; what is left out is below 1e-8
#include <cuda_runtime.h>

#include <bit>

namespace ddp {

// Returns e^x for x up to 0 (or a rounding above it), to about 1e-7 of itself; 0 where that would
// be below 2^-125. A NaN stays a NaN.
__host__ __device__ inline float exponential(float x) {
    constexpr float per_ln2 = 1.44269504f;
    // ln 2 in two parts: n times the first is exact, so nothing of r is lost.
    constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    constexpr float lowest = -86.6f;
    const float safe = x > lowest ? x : lowest;
    const int n = static_cast<int>(safe * per_ln2 - 0.5f);
    const float whole = static_cast<float>(n);
    const float r = (safe - whole * ln2_high) - whole * ln2_low;
    float series = 1.0f / 5040;
    series = series * r + 1.0f / 720;
    series = series * r + 1.0f / 120;
    series = series * r + 1.0f / 24;
    series = series * r + 1.0f / 6;
    series = series * r + 0.5f;
    series = series * r + 1.0f;
    series = series * r + 1.0f;
    const float power = std::bit_cast<float>((n + 127) << 23);
    const float value = x > lowest ? series * power : 0.0f;
    return x == x ? value : x;
}

}  // namespace ddp
