// The exercise bfloat16_gradients: sums that a double has made, too, and sums that stand still.
#include <cuda_fp16.h>

#include <cmath>
#include <cstdio>
#include <limits>

#include "exercises/04_gradient_accumulation/bfloat16_gradients.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

// What an array holds before its first use: NaN, which is left even of 0 times itself.
constexpr float unused = std::numeric_limits<float>::quiet_NaN();

// Gradient i of micro-batch k. All are bfloat16 numbers: 1 to 1.96875, in steps of 1/32.
float gradient_of(std::size_t i, std::size_t k) {
    return 1.0f + static_cast<float>((i * 7 + k * 11) % 32) / 32.0f;
}
std::vector<__nv_bfloat16> gradients_of(std::size_t n, std::size_t k) {
    std::vector<__nv_bfloat16> gradients;
    for (std::size_t i = 0; i < n; i++)
        gradients.push_back(__float2bfloat16(gradient_of(i, k)));
    return gradients;
}

std::string text(const char* format, double a, double b, double c = 0) {
    char line[200];
    std::snprintf(line, sizeof line, format, a, b, c);
    return line;
}

// Throws unless sum i of `yours` is that of micro-batches of these scales.
void compare(const std::vector<double>& yours, const std::vector<float>& scales, double tolerance,
             const std::string& hint) {
    for (std::size_t i = 0; i < yours.size(); i++) {
        double right = 0, of_rounded = 0;
        for (std::size_t k = 0; k < scales.size(); k++) {
            const float product = scales[k] * gradient_of(i, k);
            right += double{scales[k]} * double{gradient_of(i, k)};
            of_rounded += double{__bfloat162float(__float2bfloat16(product))};
        }
        const auto rounded =
            static_cast<double>(__bfloat162float(__float2bfloat16(static_cast<float>(yours[i]))));
        const bool is_rounded =
            tolerance < 1e-3 && yours[i] == rounded && std::abs(yours[i] - right) < 0.01 * right;
        if (!(std::abs(yours[i] - right) <= tolerance * right))
            throw Wrong(
                std::to_string(yours.size()) + " elements, " + std::to_string(scales.size()) +
                " micro-batches: " +
                text("sum %.0f is %g, right is %g.\n", static_cast<double>(i), yours[i], right) +
                (std::isnan(yours[i])
                     ? "It is NaN, which is what uninitialised memory holds here: do you read it "
                       "although accumulate is false? (Even 0 times NaN is NaN.) "
                     : "") +
                (tolerance < 1e-3 && std::abs(yours[i] - of_rounded) <= tolerance * right
                     ? "You round scale * gradient to bfloat16 before you add it. Keep the product "
                       "as a float."
                 : is_rounded ? "Yours is rounded to bfloat16, which loses the difference: where "
                                "do you round?"
                              : hint));
    }
}

std::vector<float> equal_scales(std::size_t micro_batches, float scale) {
    return std::vector<float>(micro_batches, scale);
}

// ---- Task into_float

void check_float(std::size_t n, const std::vector<float>& scales, const std::string& hint) {
    Stream stream;
    Buffer<float> sums(std::vector<float>(n, unused));
    for (std::size_t k = 0; k < scales.size(); k++) {
        const Buffer<__nv_bfloat16> gradients(gradients_of(n, k));
        accumulate_in_float(n, gradients.data(), scales[k], k > 0, sums.data(), stream);
        stream.synchronize();
    }
    const std::vector<float> host = sums.to_host_now();
    compare({host.begin(), host.end()}, scales, 1e-5, hint);
}

void check_into_float() {
    const std::string all = "Does every element have a thread that adds it?";
    check_float(1, {1}, "accumulate is false: the sum holds nothing yet, and is overwritten.");
    check_float(1009, {1}, all);
    check_float(1, {0.5f}, "The scale is 1/2 here.");
    check_float(1, {0.5f, 0.5f},
                "The second micro-batch is added. The scale is for its gradients, not for the sum "
                "that is there already.");
    check_float(1009, {3.0f / 7, 3.0f / 7, 1.0f / 7}, all);
    check_float(100'003, {0.25f, 0.75f}, all);
}

// ---- Task standstill

// For one thread.
template <class T>
__global__ void add_ones(std::size_t micro_batches, float* result) {
    T sum(0.0f);
    for (std::size_t k = 0; k < micro_batches; k++)
        sum = T(static_cast<float>(sum) + 1.0f);
    *result = static_cast<float>(sum);
}

template <class T>
void check_share(const std::string& type, int fraction_bits, std::size_t micro_batches,
                 const std::string& hint) {
    Stream stream;
    Buffer<float> sum(1);
    launch(stream, {1, 1}, add_ones<T>, micro_batches, sum.data());
    stream.synchronize();
    const auto n = static_cast<double>(micro_batches);
    const double measured = static_cast<double>(sum.to_host_now()[0]) / n;
    const double predicted = share_that_arrives(fraction_bits, micro_batches);
    if (!(std::abs(predicted - measured) <= 1e-6 * measured))
        throw Wrong(type + " has a fraction of " + std::to_string(fraction_bits) + " bits; " +
                    text("%.0f times 1: you predict that %.6f of the sum arrives, and %.6f did.\n",
                         n, predicted, measured) +
                    hint);
}

void check_standstill() {
    const std::string exact =
        "All whole numbers up to this sum fit into so many bits: nothing is lost.";
    const std::string still =
        "Between 2^k and 2^(k + 1) neighbours are 2^(k - fraction_bits) apart. If that is 2, then "
        "1 is half of it, and a tie is rounded to the even one: the sum stands still.";
    check_share<__nv_bfloat16>("bfloat16", 7, 8, exact);
    check_share<__nv_bfloat16>("bfloat16", 7, 10'000, still);
    check_share<__nv_bfloat16>("bfloat16", 7, 256, exact);
    check_share<__half>("half", 10, 10'000, still);
    check_share<__half>("half", 10, 1'500, exact);
    check_share<float>("float", 23, 20'000'000, still);
}

// ---- Task two_parts

std::vector<double> sum_of_parts(const Buffer<__nv_bfloat16>& sums,
                                 const Buffer<__nv_bfloat16>& lost) {
    const std::vector<__nv_bfloat16> high = sums.to_host_now(), low = lost.to_host_now();
    std::vector<double> both;
    for (std::size_t i = 0; i < high.size(); i++)
        both.push_back(static_cast<double>(__bfloat162float(high[i])) +
                       static_cast<double>(__bfloat162float(low[i])));
    return both;
}

void check_parts(std::size_t n, const std::vector<float>& scales, const std::string& hint,
                 double tolerance = 1e-3) {
    Stream stream;
    const std::vector<__nv_bfloat16> nothing(n, __float2bfloat16(unused));
    Buffer<__nv_bfloat16> sums(nothing), lost(nothing);
    for (std::size_t k = 0; k < scales.size(); k++) {
        const Buffer<__nv_bfloat16> gradients(gradients_of(n, k));
        accumulate_in_two_parts(n, gradients.data(), scales[k], k > 0, sums.data(), lost.data(),
                                stream);
        stream.synchronize();
    }
    const std::vector<__nv_bfloat16> high = sums.to_host_now();
    const std::vector<double> both = sum_of_parts(sums, lost);
    compare(both, scales, tolerance, hint);
    for (std::size_t i = 0; i < n; i++) {
        const float yours = __bfloat162float(high[i]);
        // Half a unit of the last place is what a rounding to the nearest number may lose.
        const float half_unit = yours == 0 ? 0 : std::ldexp(1.0f, std::ilogb(yours) - 8);
        if (!(std::abs(both[i] - double{yours}) <= double{half_unit}))
            throw Wrong(
                text("sums[%.0f] is %g where sums + lost is %g: sums alone should be the bfloat16 "
                     "nearest to that. Which number do you round?",
                     static_cast<double>(i), static_cast<double>(yours), both[i]));
    }
}

void check_two_parts() {
    check_parts(1, {1}, "accumulate is false: both parts hold nothing yet.");
    check_parts(17, equal_scales(2, 1.0f), "The case: two ones.");
    const std::string many =
        "The next addition needs what this one's rounding lost: is lost read, written, and of the "
        "right sign?";
    check_parts(17, equal_scales(400, 1.0f), many);
    check_parts(1009, equal_scales(100, 0.01f), many);
    check_parts(17, {3.0f / 7, 3.0f / 7, 1.0f / 7}, "The case: scales of 3/7, 3/7 and 1/7.", 1e-4);
}

}  // namespace

std::vector<Task> tasks() {
    return {{"into_float", check_into_float},
            {"standstill", check_standstill},
            {"two_parts", check_two_parts}};
}

}  // namespace ddp::test
