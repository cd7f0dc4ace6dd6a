// The 16-bit floats: every value of both formats, and every place where rounding turns over, on the
// host and in a kernel.
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "common/gpu/gpu.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {

static_assert(sizeof(__half) == 2 && sizeof(__nv_bfloat16) == 2);
static_assert(std::is_trivially_copyable_v<__half> && std::is_trivially_copyable_v<__nv_bfloat16>);
static_assert(std::is_same_v<half, __half> && std::is_same_v<nv_bfloat16, __nv_bfloat16>);

template <class T>
struct Format;
template <>
struct Format<__half> {
    static constexpr int exponent_bits = 5, fraction_bits = 10;
};
template <>
struct Format<__nv_bfloat16> {
    static constexpr int exponent_bits = 8, fraction_bits = 7;
};

constexpr std::uint16_t sign_bit = 0x8000;

template <class T>
constexpr std::uint16_t infinity_of = ((1 << Format<T>::exponent_bits) - 1)
                                      << Format<T>::fraction_bits;

// What the standard says that a bit pattern (without sign) stands for. Infinity's is taken for the
// number that would follow the largest one.
template <class T>
double magnitude_of(std::uint16_t bits) {
    constexpr int fraction_bits = Format<T>::fraction_bits;
    constexpr int bias = (1 << (Format<T>::exponent_bits - 1)) - 1;
    const int exponent = bits >> fraction_bits;
    const int fraction = bits & ((1 << fraction_bits) - 1);
    if (exponent == 0)
        return std::ldexp(fraction, 1 - bias - fraction_bits);
    return std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

__device__ __host__ inline float widen(__half value) {
    return __half2float(value);
}
__device__ __host__ inline float widen(__nv_bfloat16 value) {
    return __bfloat162float(value);
}
__device__ __host__ inline void narrow(float value, __half& to) {
    to = __float2half(value);
}
__device__ __host__ inline void narrow(float value, __nv_bfloat16& to) {
    to = __float2bfloat16(value);
}

template <class T>
__global__ void widen_all(std::size_t n, const T* from, float* to) {
    for (std::size_t i : grid_range(n))
        to[i] = widen(from[i]);
}
template <class T>
__global__ void narrow_all(std::size_t n, const float* from, T* to) {
    for (std::size_t i : grid_range(n))
        narrow(from[i], to[i]);
}

template <class T>
std::vector<float> widened_on_device(const std::vector<T>& values) {
    Stream stream;
    Buffer<T> from(values);
    Buffer<float> to(values.size());
    launch(stream, grid_for(values.size()), widen_all<T>, values.size(), from.data(), to.data());
    stream.synchronize();
    return to.to_host_now();
}
template <class T>
std::vector<T> narrowed_on_device(const std::vector<float>& values) {
    Stream stream;
    Buffer<float> from(values);
    Buffer<T> to(values.size());
    launch(stream, grid_for(values.size()), narrow_all<T>, values.size(), from.data(), to.data());
    stream.synchronize();
    return to.to_host_now();
}

template <class T>
std::uint16_t bits_of(T value) {
    return std::bit_cast<std::uint16_t>(value);
}
template <class T>
bool is_nan_pattern(std::uint16_t bits) {
    return (bits & ~sign_bit) > infinity_of<T>;
}

// All patterns, host against device against the standard, and back.
template <class T>
void check_every_pattern() {
    std::vector<T> all;
    for (unsigned int bits = 0; bits < 0x10000; bits++)
        all.push_back(std::bit_cast<T>(static_cast<std::uint16_t>(bits)));
    const std::vector<float> on_device = widened_on_device(all);
    const std::vector<T> back = narrowed_on_device<T>(on_device);
    for (std::size_t i = 0; i < all.size(); i++) {
        const auto bits = static_cast<std::uint16_t>(i);
        const std::uint16_t magnitude = bits & ~sign_bit;
        CAPTURE(bits);
        for (const float value : {static_cast<float>(all[i]), widen(all[i]), on_device[i]}) {
            const double expected = magnitude == infinity_of<T>
                                        ? std::numeric_limits<double>::infinity()
                                        : magnitude_of<T>(magnitude);
            if (is_nan_pattern<T>(bits)) {
                REQUIRE(std::isnan(value));
            } else {
                REQUIRE(std::abs(value) == expected);
                REQUIRE(std::signbit(value) == (bits >= sign_bit));
            }
        }
        for (const T again : {T(on_device[i]), back[i]})
            REQUIRE((is_nan_pattern<T>(bits) ? is_nan_pattern<T>(bits_of(again))
                                             : bits_of(again) == bits));
    }
}

TEST_CASE("every pattern of a 16-bit float is the number that the standard says, and comes back") {
    check_every_pattern<__half>();
    check_every_pattern<__nv_bfloat16>();
}

// Between two neighbours: what is nearer to one becomes that one; the middle becomes the even one.
template <class T>
void check_every_rounding() {
    std::vector<float> values;
    std::vector<std::uint16_t> expected;
    for (std::uint16_t below = 0; below < infinity_of<T>; below++) {
        const std::uint16_t above = below + 1;
        const double middle = (magnitude_of<T>(below) + magnitude_of<T>(above)) / 2;
        const auto tie = static_cast<float>(middle);
        REQUIRE(tie == middle);
        const std::uint16_t even = below % 2 == 0 ? below : above;
        for (const bool negative : {false, true}) {
            const std::uint16_t sign = negative ? sign_bit : 0;
            const float factor = negative ? -1.0f : 1.0f;
            values.insert(values.end(), {factor * std::nextafter(tie, 0.0f), factor * tie,
                                         factor * std::nextafter(tie, INFINITY)});
            for (const std::uint16_t bits : {below, even, above})
                expected.push_back(bits | sign);
        }
    }
    const std::vector<T> on_device = narrowed_on_device<T>(values);
    for (std::size_t i = 0; i < values.size(); i++) {
        CAPTURE(i, values[i]);
        REQUIRE(bits_of(T(values[i])) == expected[i]);
        REQUIRE(bits_of(on_device[i]) == expected[i]);
    }
}

TEST_CASE("a float becomes the nearest 16-bit float, in the middle between two the even one") {
    check_every_rounding<__half>();
    check_every_rounding<__nv_bfloat16>();
}

TEST_CASE("what is far beyond the largest 16-bit float, and far below the smallest one") {
    constexpr float largest = std::numeric_limits<float>::max();
    REQUIRE(bits_of(__half(largest)) == 0x7c00);
    REQUIRE(bits_of(__half(-0x1p-149f)) == 0x8000);
    REQUIRE(bits_of(__nv_bfloat16(-largest)) == 0xff80);
    REQUIRE(bits_of(__nv_bfloat16(0x1p-149f)) == 0x0000);
}

TEST_CASE("a float that is no number stays none, whichever of its bits are set") {
    std::vector<float> values;
    for (std::uint32_t fraction = 1; fraction < 1u << 23; fraction *= 2)
        for (const std::uint32_t exponent : {0x7f800000u, 0xff800000u})
            values.push_back(std::bit_cast<float>(exponent | fraction));
    const std::vector<__half> halves = narrowed_on_device<__half>(values);
    const std::vector<__nv_bfloat16> bfloats = narrowed_on_device<__nv_bfloat16>(values);
    for (std::size_t i = 0; i < values.size(); i++) {
        CAPTURE(i);
        REQUIRE(is_nan_pattern<__half>(bits_of(halves[i])));
        REQUIRE(is_nan_pattern<__half>(bits_of(__half(values[i]))));
        REQUIRE(is_nan_pattern<__nv_bfloat16>(bits_of(bfloats[i])));
        REQUIRE(is_nan_pattern<__nv_bfloat16>(bits_of(__nv_bfloat16(values[i]))));
    }
}

// As a compressed sum is taken: wide arithmetic on narrow storage.
template <class T>
__global__ void add_narrow(std::size_t n, const T* from, T* to) {
    for (std::size_t i : grid_range(n)) {
        float sum = static_cast<float>(to[i]);
        sum += static_cast<float>(from[i]);
        to[i] = sum;
    }
}

template <class T>
void check_sums() {
    std::vector<T> a, b;
    for (int i = 0; i < 1000; i++) {
        a.push_back(T(static_cast<float>(i % 100)));
        b.push_back(T(0.25f * static_cast<float>(i % 7)));
    }
    Stream stream;
    Buffer<T> from(a), to(b);
    launch(stream, grid_for(a.size()), add_narrow<T>, a.size(), from.data(), to.data());
    stream.synchronize();
    const std::vector<T> result = to.to_host_now();
    for (std::size_t i = 0; i < a.size(); i++)
        REQUIRE(bits_of(result[i]) ==
                bits_of(T(static_cast<float>(i % 100) + 0.25f * static_cast<float>(i % 7))));
}

TEST_CASE("kernels convert 16-bit floats to float to add them") {
    check_sums<__half>();
    check_sums<__nv_bfloat16>();
}

// Element (row, column) of a column-major matrix; exact in both types, and so are sums of a few
// products.
float element(int row, int column) {
    return static_cast<float>((3 * row + 5 * column) % 11 - 5) * 0.25f;
}

// Checks c = 2 op(a) op(b) + 3 c for sizes that differ, with a gap behind each column.
template <class T>
void check_product(cudaDataType type, bool transposes_a, bool transposes_b) {
    const int m = 3, n = 4, k = 5, gap = 2;
    const auto matrix = [&](int rows, int columns, float scale) {
        std::vector<float> values;
        for (int column = 0; column < columns; column++)
            for (int row = 0; row < rows + gap; row++)
                values.push_back(row < rows ? scale * element(row, column) : 1000.0f);
        return values;
    };
    const auto shorten = [](const std::vector<float>& values) {
        return std::vector<T>(values.begin(), values.end());
    };
    const int rows_a = transposes_a ? k : m, rows_b = transposes_b ? n : k;
    Buffer<T> a(shorten(matrix(rows_a, transposes_a ? m : k, 1))),
        b(shorten(matrix(rows_b, transposes_b ? k : n, 1)));
    Buffer<float> c(matrix(m, n, 4));
    Stream stream;
    cublasHandle_t blas = nullptr;
    DDP_CHECK(cublasCreate(&blas));
    DDP_CHECK(cublasSetStream(blas, stream));
    const float alpha = 2, beta = 3;
    DDP_CHECK(cublasGemmEx(blas, transposes_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                           transposes_b ? CUBLAS_OP_T : CUBLAS_OP_N, m, n, k, &alpha, a.data(),
                           type, rows_a + gap, b.data(), type, rows_b + gap, &beta, c.data(),
                           CUDA_R_32F, m + gap, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    stream.synchronize();
    DDP_CHECK(cublasDestroy(blas));
    const std::vector<float> found = c.to_host_now();
    for (int column = 0; column < n; column++)
        for (int row = 0; row < m + gap; row++) {
            float sum = 12 * element(row, column);
            for (int i = 0; i < k; i++)
                sum += 2 * (transposes_a ? element(i, row) : element(row, i)) *
                       (transposes_b ? element(column, i) : element(i, column));
            REQUIRE(found[static_cast<std::size_t>(column * (m + gap) + row)] ==
                    (row < m ? sum : 1000.0f));
        }
}

TEST_CASE("products of 16-bit matrices are exact, and added up in float") {
    for (const bool transposes_a : {false, true})
        for (const bool transposes_b : {false, true}) {
            check_product<__half>(CUDA_R_16F, transposes_a, transposes_b);
            check_product<__nv_bfloat16>(CUDA_R_16BF, transposes_a, transposes_b);
        }
}

}  // namespace ddp::test
