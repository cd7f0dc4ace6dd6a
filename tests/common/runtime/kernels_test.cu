// What kernels may do: the same source is compiled by g++ for a CPU and by nvcc for a GPU, and must
// give the same integers.
#include <algorithm>
#include <cstdint>
#include <cuda/atomic>
#include <numeric>
#include <vector>

#include "common/gpu/gpu.hpp"
#include "tests/support/catch.hpp"

static_assert(__cplusplus >= 202002L);

// A namespace with a name: nvcc cannot tell the unnamed one of a TEST_CASE from ours around it.
namespace ddp::test {

std::vector<int> counting(std::size_t n, int factor = 1, int offset = 0) {
    std::vector<int> values(n);
    for (std::size_t i = 0; i < n; i++)
        values[i] = static_cast<int>(i) * factor + offset;
    return values;
}

__global__ void add_scaled(std::size_t n, int a, const int* x, int* y) {
    for (std::size_t i : grid_range(n))
        y[i] += a * x[i];
}

TEST_CASE("grid_range gives each element to exactly one thread") {
    const std::size_t n = GENERATE(0, 1, 2, 31, 32, 33, 1000, 4097);
    for (const LaunchShape& shape :
         {grid_for(n), LaunchShape(1, 1), LaunchShape(3, 7), LaunchShape(5, 256)}) {
        Stream stream;
        Buffer<int> x(counting(n, 3, 1)), y(counting(n, -1, 5));
        launch(stream, shape, add_scaled, n, 2, x.data(), y.data());
        stream.synchronize();
        const std::vector<int> result = y.to_host_now();
        for (std::size_t i = 0; i < n; i++)
            REQUIRE(result[i] == 5 - static_cast<int>(i) + 2 * (3 * static_cast<int>(i) + 1));
    }
}

struct Coordinates {
    unsigned int thread[3], block[3];
};
__global__ void write_coordinates(Coordinates* out) {
    const unsigned int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const unsigned int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] = {
        {threadIdx.x, threadIdx.y, threadIdx.z}, {blockIdx.x, blockIdx.y, blockIdx.z}};
}

TEST_CASE("coordinates in three dimensions") {
    const dim3 grid(2, 3, 4), block(5, 3, 2);
    Stream stream;
    Buffer<Coordinates> out(24 * 30);
    launch(stream, {grid, block}, write_coordinates, out.data());
    stream.synchronize();
    const std::vector<Coordinates> result = out.to_host_now();
    std::size_t at = 0;
    for (unsigned int bz = 0; bz < 4; bz++)
        for (unsigned int by = 0; by < 3; by++)
            for (unsigned int bx = 0; bx < 2; bx++)
                for (unsigned int tz = 0; tz < 2; tz++)
                    for (unsigned int ty = 0; ty < 3; ty++)
                        for (unsigned int tx = 0; tx < 5; tx++, at++) {
                            REQUIRE(result[at].thread[0] == tx);
                            REQUIRE(result[at].thread[1] == ty);
                            REQUIRE(result[at].thread[2] == tz);
                            REQUIRE(result[at].block[0] == bx);
                            REQUIRE(result[at].block[1] == by);
                            REQUIRE(result[at].block[2] == bz);
                        }
}

// Each block reverses its own piece: wrong in any thread order without the barrier.
template <int block_threads>
__global__ void reverse_pieces(int* data) {
    __shared__ int piece[block_threads];
    int* mine = data + blockIdx.x * block_threads;
    piece[threadIdx.x] = mine[threadIdx.x];
    __syncthreads();
    mine[threadIdx.x] = piece[block_threads - 1 - threadIdx.x];
}

TEST_CASE("static shared memory and a barrier") {
    Stream stream;
    Buffer<int> data(counting(5 * 96));
    launch(stream, {5, 96}, reverse_pieces<96>, data.data());
    stream.synchronize();
    const std::vector<int> result = data.to_host_now();
    for (int i = 0; i < 5 * 96; i++)
        REQUIRE(result[i] == i / 96 * 96 + 95 - i % 96);
}

__global__ void block_sums(const int* data, std::size_t n, long long* sums) {
    long long* partial = dynamic_shared<long long>();
    long long sum = 0;
    for (std::size_t i : grid_range(n))
        sum += data[i];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = partial[0];
}

TEST_CASE("dynamic shared memory and many barriers") {
    const std::size_t n = 100'003;
    const unsigned int block = GENERATE(1u, 2u, 64u, 256u, 1024u);
    Stream stream;
    Buffer<int> data(counting(n));
    Buffer<long long> sums(3);
    launch(stream, {3, block, block * sizeof(long long)}, block_sums, data.data(), n, sums.data());
    stream.synchronize();
    const std::vector<long long> result = sums.to_host_now();
    REQUIRE(result[0] + result[1] + result[2] == 100'003LL * 100'002 / 2);
}

__global__ void warp_operations(int* out, unsigned int* votes) {
    const int i = static_cast<int>(threadIdx.x);
    int* mine = out + i * 6;
    mine[0] = __shfl_sync(0xffffffffu, i * 10, 5);
    mine[1] = __shfl_up_sync(0xffffffffu, i * 10, 3);
    mine[2] = __shfl_down_sync(0xffffffffu, i * 10, 2, 8);
    mine[3] = __shfl_xor_sync(0xffffffffu, i * 10, 6);
    mine[4] = __shfl_sync(0xffffffffu, i * 10, i + 1, 16);
    mine[5] = __all_sync(0xffffffffu, i >= 0) + 2 * __any_sync(0xffffffffu, i % 32 == 17);
    const unsigned int vote = __ballot_sync(0xffffffffu, i % 3 == 0);
    __syncwarp();
    votes[i] = vote;
}

TEST_CASE("warps of 32 lanes exchange registers as CUDA says") {
    Stream stream;
    Buffer<int> out(96 * 6);
    Buffer<unsigned int> votes(96);
    launch(stream, {1, 96}, warp_operations, out.data(), votes.data());
    stream.synchronize();
    const std::vector<int> result = out.to_host_now();
    const std::vector<unsigned int> ballots = votes.to_host_now();
    for (int i = 0; i < 96; i++) {
        const int lane = i % 32, warp = i / 32 * 32;
        const int* mine = &result[i * 6];
        CAPTURE(i);
        REQUIRE(mine[0] == (warp + 5) * 10);
        REQUIRE(mine[1] == (lane < 3 ? i : i - 3) * 10);
        REQUIRE(mine[2] == (lane % 8 + 2 < 8 ? i + 2 : i) * 10);
        REQUIRE(mine[3] == (warp + (lane ^ 6)) * 10);
        REQUIRE(mine[4] == (warp + lane / 16 * 16 + (lane + 1) % 16) * 10);
        REQUIRE(mine[5] == 3);
        unsigned int expected = 0;
        for (int other = 0; other < 32; other++)
            expected |= static_cast<unsigned int>((warp + other) % 3 == 0) << other;
        REQUIRE(ballots[i] == expected);
    }
}

// The shape of every block reduction: each warp by shuffles, then the first warp over the warps'
// sums.
__global__ void sum_by_warps(const int* data, int* sum) {
    __shared__ int of_warp[32];
    const unsigned int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int value = data[threadIdx.x];
    for (unsigned int distance = 16; distance > 0; distance /= 2)
        value += __shfl_down_sync(0xffffffffu, value, distance);
    if (lane == 0)
        of_warp[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = lane < blockDim.x / 32 ? of_warp[lane] : 0;
        for (unsigned int distance = 16; distance > 0; distance /= 2)
            value += __shfl_down_sync(0xffffffffu, value, distance);
        if (lane == 0)
            *sum = value;
    }
}

TEST_CASE("one warp may shuffle while the others are done") {
    Stream stream;
    Buffer<int> data(counting(512)), sum(1);
    launch(stream, {1, 512}, sum_by_warps, data.data(), sum.data());
    stream.synchronize();
    REQUIRE(sum.to_host_now()[0] == 512 * 511 / 2);
}

__global__ void halves_of_a_warp(int* out) {
    const int lane = static_cast<int>(threadIdx.x);
    if (lane < 16)
        out[lane] = __shfl_sync(0x0000ffffu, lane, 3);
    else
        out[lane] = __shfl_sync(0xffff0000u, lane, 19);
}

TEST_CASE("disjoint masks of one warp meet at different lines") {
    Stream stream;
    Buffer<int> out(32);
    launch(stream, {1, 32}, halves_of_a_warp, out.data());
    stream.synchronize();
    const std::vector<int> result = out.to_host_now();
    for (int lane = 0; lane < 32; lane++)
        REQUIRE(result[lane] == (lane < 16 ? 3 : 19));
}

// A block whose last warp is short, or that is one thread alone: lanes that are not there do not
// count.
__global__ void vote_in_short_warps(int* out) {
    const int i = static_cast<int>(threadIdx.x);
    int* mine = out + (blockIdx.x * blockDim.x + threadIdx.x) * 5;
    mine[0] = __all_sync(0xffffffffu, i >= 0);
    mine[1] = __all_sync(0xffffffffu, i != 0);
    mine[2] = __any_sync(0xffffffffu, i == 0);
    mine[3] = __shfl_sync(0xffffffffu, i + 100, 0);
    __syncwarp();
    mine[4] = __popc(__ballot_sync(0xffffffffu, 1));
}

TEST_CASE("short warps") {
    const unsigned int threads = GENERATE(1u, 2u, 31u, 40u);
    Stream stream;
    Buffer<int> out(2 * threads * 5);
    launch(stream, {2, threads}, vote_in_short_warps, out.data());
    stream.synchronize();
    const std::vector<int> result = out.to_host_now();
    for (unsigned int t = 0; t < 2 * threads; t++) {
        const int* mine = &result[t * 5];
        const unsigned int i = t % threads;
        CAPTURE(threads, t);
        REQUIRE(mine[0] == 1);
        REQUIRE(mine[1] == (i >= 32));
        REQUIRE(mine[2] == (i < 32));
        REQUIRE(mine[3] == (i >= 32 ? 132 : 100));
        REQUIRE(mine[4] == static_cast<int>(i >= 32 ? threads - 32 : std::min(threads, 32u)));
    }
}

struct Counters {
    int sum, low, high, minimum, maximum, bits_and, bits_or;
    unsigned int exchanged;
    unsigned long long wide;
    float real;
    double precise;
};
__global__ void count_atomically(Counters* counters) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    atomicAdd(&counters->sum, i);
    atomicSub(&counters->low, 1);
    atomicMin(&counters->minimum, 100 - i);
    atomicMax(&counters->maximum, i * 2);
    atomicAnd(&counters->bits_and, ~(1 << (i % 20)));
    atomicOr(&counters->bits_or, 1 << (i % 20));
    atomicAdd(&counters->wide, 1ull << 32);
    atomicAdd(&counters->real, 0.5f);
    atomicAdd(&counters->precise, 0.25);
    int old = atomicCAS(&counters->high, 0, 1);  // a counter made of compare-and-swap
    while (old != i + 1 && old >= 0) {
        const int assumed = old;
        old = atomicCAS(&counters->high, assumed, assumed + 1);
        if (old == assumed)
            break;
    }
    atomicExch(&counters->exchanged, 7u);
}

TEST_CASE("atomics") {
    Stream stream;
    Buffer<Counters> counters(
        std::vector<Counters>{Counters{0, 0, 0, 1000, -1000, -1, 0, 0, 0, 0, 0}});
    launch(stream, {4, 50}, count_atomically, counters.data());
    stream.synchronize();
    const Counters result = counters.to_host_now()[0];
    CHECK(result.sum == 200 * 199 / 2);
    CHECK(result.low == -200);
    CHECK(result.minimum == 100 - 199);
    CHECK(result.maximum == 398);
    CHECK(result.bits_and == ~((1 << 20) - 1));
    CHECK(result.bits_or == (1 << 20) - 1);
    CHECK(result.exchanged == 7);
    CHECK(result.wide == 200ull << 32);
    CHECK(result.real == 100.0f);
    CHECK(result.precise == 50.0);
}

// A grid-wide barrier by hand: only a cooperative launch promises that it ends.
__global__ void meet_across_blocks(int* arrived, int* seen) {
    if (threadIdx.x == 0) {
        cuda::atomic_ref<int, cuda::thread_scope_device> counter(*arrived);
        counter.fetch_add(1, cuda::memory_order_acq_rel);
        while (counter.load(cuda::memory_order_acquire) < static_cast<int>(gridDim.x))
            __nanosleep(100);
    }
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1)
        seen[blockIdx.x] = *arrived;
}

TEST_CASE("blocks of a cooperative launch wait for each other") {
    const unsigned int blocks = GENERATE(1u, 2u, 4u, 8u);
    Stream stream;
    Buffer<int> arrived(std::vector<int>{0}), seen(blocks);
    launch_cooperative(stream, {blocks, 64}, meet_across_blocks, arrived.data(), seen.data());
    stream.synchronize();
    for (int count : seen.to_host_now())
        REQUIRE(count == static_cast<int>(blocks));
}

// Two threads of one block that wait for each other without a barrier: __nanosleep lets the other
// one run.
__global__ void ping_pong(int* ball, int rounds) {
    cuda::atomic_ref<int, cuda::thread_scope_block> hits(*ball);
    for (int round = 0; round < rounds; round++) {
        while (hits.load(cuda::memory_order_acquire) % 2 != static_cast<int>(threadIdx.x))
            __nanosleep(20);
        hits.fetch_add(1, cuda::memory_order_release);
    }
}

TEST_CASE("__nanosleep lets the awaited thread run") {
    Stream stream;
    Buffer<int> ball(std::vector<int>{0});
    launch(stream, {1, 2}, ping_pong, ball.data(), 100);
    stream.synchronize();
    REQUIRE(ball.to_host_now()[0] == 200);
}

struct Large {
    int values[200];
};
__global__ void sum_argument(Large large, int* sum) {
    int total = 0;
    for (int value : large.values)
        total += value;
    *sum = total;
}

TEST_CASE("arguments of 800 bytes are copied at the launch") {
    Stream stream;
    Large large;
    std::iota(std::begin(large.values), std::end(large.values), 1);
    Buffer<int> sum(1);
    launch(stream, {1, 1}, sum_argument, large, sum.data());
    large = {};
    stream.synchronize();
    REQUIRE(sum.to_host_now()[0] == 200 * 201 / 2);
}

}  // namespace ddp::test
