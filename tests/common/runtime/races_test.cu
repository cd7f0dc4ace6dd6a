// The race detector: what it says of a race, and what is none. (Which mistakes it sees is in the
// table of common/cuda_on_cpu/README.md.)
#include <cuda/atomic>

#include "cuda_on_cpu/observe.hpp"
#include "tests/common/runtime/diagnoses.hpp"

namespace ddp::test {
namespace {

constexpr unsigned int n = 96;
const std::string unordered = "nothing puts one before the other: ";

// ---- What is said

constexpr int line_of_sum = __LINE__ + 2;
__global__ void add_to_one_place(const int* in, int* out) {
    *out += in[threadIdx.x];
}
constexpr int line_of_write = __LINE__ + 3, line_of_read = __LINE__ + 4;
__global__ void take_from_the_left_warp(const int* in, int* out) {
    __shared__ int piece[n];
    piece[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = threadIdx.x < 32 ? 0 : piece[threadIdx.x - 32];
}
__global__ void take_from_the_block_before(const int* in, int* out) {
    out[1 + blockIdx.x] = in[blockIdx.x];
    if (blockIdx.x == 1 && threadIdx.x == 0)
        out[0] = out[blockIdx.x];
}
__global__ void read_what_others_count(const int* in, int* out) {
    atomicAdd(out, in[threadIdx.x]);
    out[1 + threadIdx.x] = *out;
}

std::string race_in(const LaunchShape& shape, void (*kernel)(const int*, int*)) {
    return failure_of([&] {
        Stream stream;
        const Buffer<int> in(std::vector<int>(n, 1));
        Buffer<int> out(std::vector<int>(2 * n, 0));
        launch(stream, shape, kernel, in.data(), out.data());
        stream.synchronize();
    });
}

TEST_CASE("a race is named with both lines, both threads, the memory and a cure") {
    require_parts(race_in({1, dim3(32, 3)}, add_to_one_place),
                  {"add_to_one_place",
                   "thread (1,0,0) of block (0,0,0) reads at " + here(line_of_sum) +
                       " what thread (0,0,0) of block (0,0,0) writes at the "
                       "same line (byte 0 of the 768 bytes that cudaMalloc at",
                   unordered + "put a __syncthreads() between two rounds", "(atomicAdd)"});
    require_parts(race_in({1, n}, take_from_the_left_warp),
                  {"thread (32,0,0) of block (0,0,0) reads at " + here(line_of_read) +
                       " what thread (0,0,0) of block (0,0,0) writes at " + here(line_of_write) +
                       " (shared memory)",
                   unordered + "put a __syncthreads() between the two"});
    require_parts(
        race_in({dim3(2, 1), 1}, take_from_the_block_before),
        {"thread (0,0,0) of block (1,0,0) reads", "what thread (0,0,0) of block (0,0,0) writes",
         "byte 4 of the 768 bytes", "the blocks of a launch run in any order"});
    require_parts(race_in({1, n}, read_what_others_count),
                  {"thread (1,0,0) of block (0,0,0) writes by an atomic at",
                   "what thread (0,0,0) of block (0,0,0) reads at",
                   "an atomic protects from other atomics only"});
}

// ---- What is no race

using Flag = cuda::atomic_ref<int, cuda::thread_scope_device>;

// Bytes side by side, which share a word; and the block's own shared memory, at one address.
__global__ void write_bytes(unsigned char* out) {
    __shared__ unsigned char piece[n];
    const unsigned int i = blockIdx.x * n + threadIdx.x;
    piece[threadIdx.x] = static_cast<unsigned char>(i);
    __syncthreads();
    out[i] = piece[n - 1 - threadIdx.x];
}
__global__ void write_byte_and_word(unsigned char* out) {
    if (threadIdx.x == 0)
        *reinterpret_cast<int*>(out) = 0;
    else
        out[threadIdx.x] = 1;
}

// Some lanes of a warp meet, others do not.
template <bool right>
__global__ void take_from_the_left_of_four(unsigned char* out) {
    __shared__ int piece[32];
    const unsigned int mask = 0xfu << threadIdx.x / 4 * 4;
    piece[threadIdx.x] = 1;
    __syncwarp(right || threadIdx.x < 16 ? mask : 1u << threadIdx.x);
    out[threadIdx.x] = static_cast<unsigned char>(piece[threadIdx.x ^ 1]);
}

// What a warp has done before it met comes with what one of its lanes releases.
template <bool right>
__global__ void pass_on_for_the_warp(unsigned char* out) {
    __shared__ int values[32], flag;
    if (threadIdx.x == 0)
        Flag(flag).store(0, cuda::memory_order_relaxed);
    __syncthreads();
    if (threadIdx.x < 32) {
        values[threadIdx.x] = 1;
        if (right)
            __syncwarp();
        if (threadIdx.x == 31)
            Flag(flag).store(1, cuda::memory_order_release);
    } else {
        while (Flag(flag).load(cuda::memory_order_acquire) == 0)
            __nanosleep(100);
        out[threadIdx.x] = static_cast<unsigned char>(values[threadIdx.x % 32]);
    }
}

// Each thread gets a ticket, and with it all that those before it have done.
template <cuda::memory_order order>
__global__ void queue_up(unsigned char* out) {
    __shared__ int tickets, sum;
    if (threadIdx.x == 0)
        tickets = sum = 0;
    __syncthreads();
    while (Flag(tickets).load(cuda::memory_order_acquire) != static_cast<int>(threadIdx.x))
        __nanosleep(100);
    sum += 1;
    Flag(tickets).fetch_add(1, order);
    __syncthreads();
    out[threadIdx.x] = static_cast<unsigned char>(sum);
}

// Who draws a ticket passes on what another has released there, also what it does not know itself.
template <bool right>
__global__ void draw_a_ticket(unsigned char* out) {
    __shared__ int value, tickets;
    if (threadIdx.x == 0)
        tickets = 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        value = 3;
        Flag(tickets).store(1, right ? cuda::memory_order_release : cuda::memory_order_relaxed);
    } else if (threadIdx.x == 1) {
        while (Flag(tickets).load(cuda::memory_order_relaxed) == 0)
            __nanosleep(100);
        Flag(tickets).fetch_add(1, cuda::memory_order_relaxed);
    } else {
        while (Flag(tickets).load(cuda::memory_order_acquire) != 2)
            __nanosleep(100);
        out[threadIdx.x] = static_cast<unsigned char>(value);
    }
}

// Each thread has a byte of its own, at a distance that the detector's pages are found by.
constexpr std::size_t far = 256 << 10, bytes_of_out = far + 1;
__global__ void write_far_apart(unsigned char* out) {
    out[threadIdx.x * far] = 1;
}

// An array that all read, and thread 0 writes when all have read it.
template <bool right>
__global__ void write_what_all_have_read(unsigned char* out) {
    __shared__ int value;
    if (threadIdx.x == 0)
        value = 1;
    __syncthreads();
    out[threadIdx.x] = static_cast<unsigned char>(value);
    if (right)
        __syncthreads();
    if (threadIdx.x == n - 1)
        value = 2;
}

// Returns what is said of the kernel; nothing, if it is right.
std::string said_of(const LaunchShape& shape, void (*kernel)(unsigned char*)) {
    const auto run = [&] {
        Stream stream;
        Buffer<unsigned char> out(std::vector<unsigned char>(bytes_of_out, 0));
        launch_cooperative(stream, shape, kernel, out.data());
        stream.synchronize();
    };
    try {
        run();
        return "";
    } catch (const GpuError&) {
    }
    reset_device();
    return failure_of(run);
}

TEST_CASE("what is ordered does not race, and what is not does") {
    CHECK(said_of({3, n}, write_bytes) == "");
    CHECK(has(said_of({1, 2}, write_byte_and_word), unordered));
    CHECK(said_of({1, 32}, take_from_the_left_of_four<true>) == "");
    CHECK(has(said_of({1, 32}, take_from_the_left_of_four<false>), unordered));
    CHECK(said_of({1, n}, pass_on_for_the_warp<true>) == "");
    CHECK(has(said_of({1, n}, pass_on_for_the_warp<false>), unordered));
    CHECK(said_of({1, n}, queue_up<cuda::memory_order_acq_rel>) == "");
    CHECK(has(said_of({1, n}, queue_up<cuda::memory_order_relaxed>), unordered));
    CHECK(said_of({1, 3}, draw_a_ticket<true>) == "");
    CHECK(has(said_of({1, 3}, draw_a_ticket<false>), unordered));
    CHECK(said_of({1, 2}, write_far_apart) == "");
    CHECK(said_of({1, n}, write_what_all_have_read<true>) == "");
    CHECK(has(said_of({1, n}, write_what_all_have_read<false>), unordered));
}

TEST_CASE("without the setting nothing is said") {
    const With plain([](cuda_on_cpu::Settings& to) { to.races = false; });
    CHECK(said_of({1, 2}, write_byte_and_word) == "");
}

// ---- Who works

// Threads of block 0 read every second element twice, and thread 5 of block 1 writes four at once.
struct alignas(16) Four {
    int values[4];
};
__global__ void work(const int* in, int* out) {
    if (blockIdx.x == 0)
        for (unsigned int i = threadIdx.x; i < n / 2; i += blockDim.x)
            out[i] = in[2 * i] * in[2 * i];
    else if (threadIdx.x == 5)
        *reinterpret_cast<Four*>(out + n) = Four{{1, 2, 3, 4}};
}
cuda_on_cpu::KernelUse use_of_kernel;

TEST_CASE("who uses an array is counted, element by element") {
    Stream stream;
    const Buffer<int> in(std::vector<int>(n, 1));
    Buffer<int> out(std::vector<int>(2 * n, 0));
    cuda_on_cpu::observe_arrays({{in.data(), n, 4}, {out.data(), 2 * n, 4}});
    cuda_on_cpu::observe_kernels(
        [](const cuda_on_cpu::FinishedKernel& k) { use_of_kernel = k.use; });
    launch(stream, {2, 32}, work, in.data(), out.data());
    stream.synchronize();
    cuda_on_cpu::observe_kernels(nullptr);
    cuda_on_cpu::observe_arrays({});
    const std::vector<cuda_on_cpu::ArrayUse>& seen = use_of_kernel.arrays;
    REQUIRE(seen.size() == 2);
    CHECK(use_of_kernel.shared_reads == std::vector<std::uint64_t>(64, 0));
    std::vector<std::uint32_t> read(64, 0), written(64, 0);
    for (unsigned int t = 0; t < 32; t++)
        read[t] = written[t] = t < 16 ? 2 : 1;
    written[32 + 5] = 4;
    CHECK(seen[0].read == read);
    CHECK(seen[0].written == std::vector<std::uint32_t>(64, 0));
    CHECK(seen[0].reads >= n / 2);
    CHECK(seen[1].written == written);
}

}  // namespace
}  // namespace ddp::test
