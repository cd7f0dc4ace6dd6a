// Every version of the block reduction, in blocks of every size: exact integers, and floats to the
// bit in the order that block_reduce.hpp promises.
#include "02_kernels/block_reduce.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>

#include "02_kernels/support/block_sum.cuh"
#include "02_kernels/support/sum_orders.hpp"
#include "common/data/random.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {

// The scratch memory is of the promised size and not one element larger: strict mode sees the rest.
template <ReduceOp op, class T>
T reduced(Stream& stream, const BlockReduce& config, const std::vector<T>& values) {
    Buffer<T> device(values), scratch(scratch_elements(config, values.size())), result(1);
    block_reduce<op>(config, values.size(), device.data(), result.data(), scratch.data(), stream);
    stream.synchronize();
    const std::vector<T> after = device.to_host_now();
    const bool is_untouched =
        values.empty() || std::memcmp(after.data(), values.data(), device.bytes()) == 0;
    REQUIRE(is_untouched);
    return result.to_host_now()[0];
}

static std::vector<BlockReduce> all_reductions() {
    std::vector<BlockReduce> all;
    for (const ReduceVersion version : reduce_versions)
        for (unsigned int block = 32; block <= 1024; block *= 2)
            all.push_back({version, block});
    return all;
}

constexpr std::size_t reduce_counts[] = {0, 1, 2, 31, 32, 33, 257, 1009, 8191, 65'537};

// No two neighbours are equal, none is 0, and a million of them do not overflow.
static std::vector<int> distinct_integers(std::size_t n) {
    std::vector<int> values(n);
    for (std::size_t i = 0; i < n; i++)
        values[i] = static_cast<int>(i % 1009) + 1;
    return values;
}

static std::vector<float> random_floats(std::size_t n) {
    Random random(n);
    std::vector<float> values(n);
    for (float& value : values)
        value = random.uniform(-1, 3);
    return values;
}

// How many sums are wrong, over all counts.
static int wrong_sums(const std::function<int(const std::vector<int>&)>& sum_of) {
    int wrong = 0;
    for (const std::size_t n : reduce_counts) {
        const std::vector<int> values = distinct_integers(n);
        wrong += sum_of(values) != std::accumulate(values.begin(), values.end(), 0);
    }
    return wrong;
}

TEST_CASE("block_reduce: every version and block size adds integers exactly") {
    Stream stream;
    for (const BlockReduce& config : all_reductions()) {
        CAPTURE(name_of(config.version), config.block);
        REQUIRE(wrong_sums([&](const std::vector<int>& values) {
                    return reduced<ReduceOp::sum>(stream, config, values);
                }) == 0);
    }
}

TEST_CASE("block_reduce: a million integers and three", "[exhaustive]") {
    Stream stream;
    const std::vector<int> values = distinct_integers(1'000'003);
    const int sum = std::accumulate(values.begin(), values.end(), 0);
    for (const BlockReduce& config : all_reductions()) {
        CAPTURE(name_of(config.version), config.block);
        REQUIRE(reduced<ReduceOp::sum>(stream, config, values) == sum);
    }
}

// What a beginner's kernels forget, to see that the check above does not let it pass.
__global__ void sum_without_the_last(std::size_t n, const int* values, int* sum) {
    for (std::size_t i : grid_range(n - 1))
        atomicAdd(sum, values[i]);
}
__global__ void sum_of_whole_warps(std::size_t n, const int* values, int* sum) {
    for (std::size_t i : grid_range(n / 32 * 32))
        atomicAdd(sum, values[i]);
}

TEST_CASE("block_reduce: a kernel that forgets the last element, or the last warp, is found out") {
    for (const auto mutant : {sum_without_the_last, sum_of_whole_warps}) {
        const int wrong = wrong_sums([&](const std::vector<int>& values) {
            Stream stream;
            Buffer<int> device(values), sum(std::vector<int>{0});
            if (!values.empty())
                launch(stream, {2, 64}, mutant, values.size(), device.data(), sum.data());
            stream.synchronize();
            return sum.to_host_now()[0];
        });
        // Right for no elements; the second also for 32 of them.
        REQUIRE(wrong == static_cast<int>(std::size(reduce_counts)) -
                             (mutant == sum_without_the_last ? 1 : 2));
    }
}

// The extreme one stands at each end, in the middle, and where a block of 32 ends. The largest is
// below 0 and the smallest above: what fills up a block must not win.
template <class T>
void check_extremes(Stream& stream, const BlockReduce& config) {
    const bool has_atomics = std::is_same_v<T, int>;
    if (config.version == ReduceVersion::atomics && !has_atomics)
        return;
    for (const std::size_t n : {1, 33, 1009})
        for (const std::size_t place :
             {std::size_t{0}, n / 2, std::min(n - 1, std::size_t{32}), n - 1}) {
            std::vector<T> negative(n), positive(n);
            for (std::size_t i = 0; i < n; i++) {
                positive[i] = static_cast<T>(i * 7 % 1000 + 500);
                negative[i] = -positive[i];
            }
            positive[place] = T(3);
            negative[place] = T(-3);
            CAPTURE(name_of(config.version), config.block, n, place);
            REQUIRE(reduced<ReduceOp::maximum>(stream, config, negative) == T(-3));
            REQUIRE(reduced<ReduceOp::minimum>(stream, config, positive) == T(3));
        }
}

TEST_CASE("block_reduce: maximum and minimum, wherever they stand") {
    Stream stream;
    for (const BlockReduce& config : all_reductions()) {
        check_extremes<int>(stream, config);
        check_extremes<float>(stream, config);
        check_extremes<double>(stream, config);
    }
}

TEST_CASE("block_reduce: nothing at all") {
    Stream stream;
    const std::vector<float> none;
    for (const BlockReduce& config : all_reductions()) {
        REQUIRE(reduced<ReduceOp::sum>(stream, config, none) == 0.0f);
        REQUIRE(reduced<ReduceOp::maximum>(stream, config, std::vector<int>()) ==
                std::numeric_limits<int>::lowest());
        if (config.version == ReduceVersion::atomics)
            continue;
        REQUIRE(reduced<ReduceOp::maximum>(stream, config, none) == -INFINITY);
        REQUIRE(reduced<ReduceOp::minimum>(stream, config, none) == INFINITY);
    }
}

TEST_CASE("block_reduce: one element that is no number makes the result none") {
    Stream stream;
    std::vector<float> values = random_floats(5'000);
    values[4'321] = std::numeric_limits<float>::quiet_NaN();
    for (const BlockReduce& config : all_reductions()) {
        CAPTURE(name_of(config.version), config.block);
        REQUIRE(std::isnan(reduced<ReduceOp::sum>(stream, config, values)));
        if (config.version == ReduceVersion::atomics)
            continue;
        REQUIRE(std::isnan(reduced<ReduceOp::maximum>(stream, config, values)));
        REQUIRE(std::isnan(reduced<ReduceOp::minimum>(stream, config, values)));
    }
}

TEST_CASE("block_reduce: doubles keep what floats would lose") {
    Stream stream;
    std::vector<double> values(10'007);
    for (std::size_t i = 0; i < values.size(); i++)
        values[i] = 0x1p38 + static_cast<double>(i);
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    for (const BlockReduce& config : all_reductions())
        REQUIRE(reduced<ReduceOp::sum>(stream, config, values) == sum);
}

// ---- The promised order of float sums, written down a second time, for the host.

// Of a power of two of sums.
static float halves(std::vector<float> sums) {
    for (std::size_t half = sums.size() / 2; half > 0; half /= 2)
        for (std::size_t i = 0; i < half; i++)
            sums[i] += sums[i + half];
    return sums[0];
}

static float by_warps(const std::vector<float>& sums) {
    std::vector<float> of_warp(32, 0.0f);
    for (std::size_t first = 0; first < sums.size(); first += 32)
        of_warp[first / 32] = halves({sums.begin() + static_cast<std::ptrdiff_t>(first),
                                      sums.begin() + static_cast<std::ptrdiff_t>(first) + 32});
    return halves(of_warp);
}

// What the threads of one block bring to the tree: every B-th of the block's 8 B elements.
static std::vector<float> taken_by_threads(const std::vector<float>& values, std::size_t first,
                                           std::size_t block) {
    std::vector<float> sums(block, 0.0f);
    for (std::size_t i = first; i < std::min(values.size(), first + 8 * block); i++)
        sums[(i - first) % block] += values[i];
    return sums;
}

static float by_passes(std::vector<float> values, std::size_t block,
                       const std::function<float(const std::vector<float>&)>& tree) {
    do {
        std::vector<float> of_block;
        for (std::size_t first = 0; first < std::max<std::size_t>(values.size(), 1);
             first += 8 * block)
            of_block.push_back(tree(taken_by_threads(values, first, block)));
        values = of_block;
    } while (values.size() > 1);
    return values[0];
}

// A CPU's thread takes one piece, a GPU's strides.
static float by_accumulators(const std::vector<float>& values, std::size_t block,
                             std::size_t blocks) {
    const std::size_t n = values.size(), threads = blocks * block;
    std::vector<float> of_block;
    for (std::size_t b = 0; b < blocks; b++) {
        std::vector<float> sums;
        for (std::size_t thread = b * block; thread < (b + 1) * block; thread++) {
            std::vector<float> lanes(block > 512 ? 16 : 32, 0.0f);
            const std::size_t first = kernels_run_on_cpu ? n * thread / threads : thread;
            const std::size_t last = kernels_run_on_cpu ? n * (thread + 1) / threads : n;
            const std::size_t step = kernels_run_on_cpu ? 1 : threads;
            for (std::size_t i = first, k = 0; i < last; i += step, k++)
                lanes[k % lanes.size()] += values[i];
            sums.push_back(halves(lanes));
        }
        of_block.push_back(by_warps(sums));
    }
    return blocks == 1 ? of_block[0] : by_accumulators(of_block, block, 1);
}

static float promised_sum(const BlockReduce& config, const std::vector<float>& values) {
    switch (config.version) {
        case ReduceVersion::interleaved:
            return sum_of_neighbours(values);
        case ReduceVersion::sequential:
            return by_passes(values, config.block, halves);
        case ReduceVersion::warps:
            return by_passes(values, config.block, by_warps);
        default:
            return by_accumulators(
                values, config.block,
                std::max<std::size_t>(scratch_elements(config, values.size()), 1));
    }
}

TEST_CASE("block_reduce: float sums are, to the bit, those of the promised order") {
    Stream stream;
    for (const std::size_t n : reduce_counts) {
        const std::vector<float> values = random_floats(n);
        for (const BlockReduce& config : all_reductions()) {
            if (config.version == ReduceVersion::atomics)
                continue;
            CAPTURE(name_of(config.version), config.block, n);
            const float promised = promised_sum(config, values);
            for (int again = 0; again < 2; again++)
                REQUIRE(std::bit_cast<unsigned int>(reduced<ReduceOp::sum>(
                            stream, config, values)) == std::bit_cast<unsigned int>(promised));
        }
    }
}

// Writes the sums of 1, 2, ..., n and of their squares, as every thread of the block has them.
__global__ void sums_of_block(std::size_t n, const int* values, int* sums, int* squares) {
    const int sum = sum_by_block<int>(n, [=](std::size_t i) { return values[i]; });
    const int square = sum_by_block<int>(n, [=](std::size_t i) { return values[i] * values[i]; });
    sums[threadIdx.x] = sum;
    squares[threadIdx.x] = square;
}

TEST_CASE("sum_by_block: every thread of a block of any size gets the sum") {
    Stream stream;
    for (const unsigned int threads : {1u, 2u, 3u, 5u, 32u, 37u, 256u, 1000u, 1024u})
        for (const int n : {0, 1, 2, 31, 37, 300, 1500}) {
            CAPTURE(threads, n);
            std::vector<int> values(static_cast<std::size_t>(n));
            std::iota(values.begin(), values.end(), 1);
            const Buffer<int> data(values.empty() ? std::vector<int>{7} : values);
            Buffer<int> sums(threads), squares(threads);
            launch(stream, {dim3(1), dim3(threads)}, sums_of_block, values.size(), data.data(),
                   sums.data(), squares.data());
            stream.synchronize();
            REQUIRE(sums.to_host_now() == std::vector<int>(threads, n * (n + 1) / 2));
            const auto square = static_cast<int>(std::int64_t{n} * (n + 1) * (2 * n + 1) / 6);
            REQUIRE(squares.to_host_now() == std::vector<int>(threads, square));
        }
}

TEST_CASE("block_reduce: the longest chain of additions") {
    using enum ReduceVersion;
    REQUIRE(steps_of({atomics, 256}, 1'000) == 1'000);
    REQUIRE(steps_of({interleaved, 1024}, 1'024) == 10);
    REQUIRE(steps_of({interleaved, 32}, 1'024) == 10);
    REQUIRE(steps_of({interleaved, 32}, 1'025) == 15);
    REQUIRE(steps_of({sequential, 256}, 2'048) == 8 + 8);
    REQUIRE(steps_of({warps, 256}, 2'049) == 2 * (8 + 10));
    REQUIRE(steps_of({accumulators, 32}, 1'024) == 1 + 5 + 10);
}

static std::string refusal_of(const std::function<void()>& work) {
    try {
        work();
        return "";
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
}

TEST_CASE("block_reduce: what cannot be done is refused in one sentence") {
    Stream stream;
    const std::vector<float> values(100, 1.0f);
    for (const unsigned int block : {0u, 16u, 48u, 2048u})
        REQUIRE(refusal_of([&] {
                    reduced<ReduceOp::sum>(stream, {ReduceVersion::accumulators, block}, values);
                }) == "A block that reduces needs a power of two of threads from 32 to 1024, not " +
                          std::to_string(block) + ".");
    REQUIRE(refusal_of([&] {
                reduced<ReduceOp::maximum>(stream, {ReduceVersion::atomics, 32}, values);
            }) == "CUDA has no atomic maximum of this type: use another version than atomics.");
}

}  // namespace ddp::test
