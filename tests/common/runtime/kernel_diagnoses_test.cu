// What a beginner does wrong in a kernel, and what is said about it: each mistake is made here, and
// its message read. For the CPU only. Mistakes that end the process are made in a child process.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cuda/atomic>
#include <fstream>
#include <initializer_list>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "common/cuda_on_cpu/src/fiber.hpp"
#include "tests/common/runtime/diagnoses.hpp"
#include "tests/support/child.hpp"

namespace ddp::test {
namespace {

// ---- Barriers

constexpr int first_returns_text = __LINE__ + 4;
__global__ void first_returns() {
    if (threadIdx.x == 0)
        return;
    __syncthreads();
}

constexpr int last_returns_text = __LINE__ + 4;
__global__ void last_returns() {
    if (threadIdx.x == 63)
        return;
    __syncthreads();
}

TEST_CASE("a thread returns before a barrier that others wait at") {
    const int line = __LINE__ + 1;
    const std::string first = failure_of_kernel({2, 64}, first_returns);
    require_parts(first, {"cudaErrorLaunchFailure", "first_returns(), launched at " + here(line),
                          "thread (1,0,0) of block (0,0,0) waits at the __syncthreads() of " +
                              here(first_returns_text),
                          "thread (0,0,0) returned before it", "guard the work, not the barrier"});
    require_parts(failure_of_kernel({2, 64}, last_returns),
                  {"last_returns()",
                   "thread (63,0,0) of block (0,0,0) returned while thread "
                   "(0,0,0) waits at the __syncthreads() of " +
                       here(last_returns_text)});
}

constexpr int two_barriers_text = __LINE__ + 3;
__global__ void two_barriers() {
    if (threadIdx.x < 16)
        __syncthreads();
    else
        __syncthreads();
}

TEST_CASE("two barriers at different lines") {
    require_parts(failure_of_kernel({1, 64}, two_barriers),
                  {"two_barriers()",
                   "thread (16,0,0) of block (0,0,0) waits at the __syncthreads() of " +
                       here(two_barriers_text + 2),
                   "but thread (0,0,0) waits at that of " + here(two_barriers_text),
                   "all threads of a block must meet at the same one"});
}

// ---- Warps

constexpr int not_in_mask = __LINE__ + 2;
__global__ void not_in_own_mask() {
    __shfl_sync(0x00ffu, 1, 0);
}

__global__ void odd_width() {
    __shfl_down_sync(0xffffffffu, 1, 1, 12);
}

constexpr int two_warp_calls_text = __LINE__ + 3;
__global__ void two_warp_calls() {
    if (threadIdx.x < 16)
        __syncwarp();
    else
        __ballot_sync(0xffffffffu, 1);
}

constexpr int lane_zero_returns_text = __LINE__ + 4;
__global__ void lane_zero_returns() {
    if (threadIdx.x == 32)
        return;
    __shfl_xor_sync(0xffffffffu, 3, 1);
}

constexpr int lane_returns_late_text = __LINE__ + 4;
__global__ void lane_returns_late() {
    if (threadIdx.x == 40)
        return;
    __syncwarp();
}

constexpr int two_masks_text = __LINE__ + 2;
__global__ void two_masks() {
    __shfl_xor_sync(threadIdx.x < 16 ? 0xffffffffu : 0xffff0000u, 3, 1);
}

// clang-format off
constexpr int one_line_text = __LINE__ + 2;
__global__ void two_calls_in_one_line() {
    threadIdx.x < 16 ? __shfl_xor_sync(0xffffffffu, 3, 1) : __shfl_xor_sync(0xffffffffu, 3, 1);
}
__global__ void two_barriers_in_one_line() {
    if (threadIdx.x < 16) __syncthreads(); else __syncthreads();
}
// clang-format on

TEST_CASE("two calls in one line are told apart") {
    require_parts(failure_of_kernel({1, 32}, two_masks),
                  {"thread (16,0,0)",
                   "waits at the __shfl_xor_sync of " + here(two_masks_text) +
                       " with mask 0xffff0000, but lanes of its warp wait at the __shfl_xor_sync "
                       "of " +
                       here(two_masks_text) + " with mask 0xffffffff: the lanes of a mask"});
    const std::string calls = failure_of_kernel({1, 32}, two_calls_in_one_line);
    require_parts(calls, {here(one_line_text) + ", column "});
    REQUIRE(count(calls, ", column ") == 2);
    REQUIRE(count(failure_of_kernel({1, 32}, two_barriers_in_one_line), ", column ") == 2);
}

TEST_CASE("lanes of a warp that do not meet") {
    require_parts(failure_of_kernel({1, 32}, not_in_own_mask),
                  {"thread (8,0,0)", "calls the __shfl_sync of " + here(not_in_mask),
                   "a mask that does not name its own lane 8"});
    require_parts(failure_of_kernel({1, 32}, odd_width),
                  {"__shfl_down_sync", "width 12", "1, 2, 4, 8, 16 or 32"});
    require_parts(
        failure_of_kernel({1, 64}, two_warp_calls),
        {"thread (16,0,0)", "waits at the __ballot_sync of " + here(two_warp_calls_text + 2),
         "lanes of its warp wait at the __syncwarp of " + here(two_warp_calls_text)});
    require_parts(
        failure_of_kernel({1, 64}, lane_zero_returns),
        {"thread (33,0,0)", "waits at the __shfl_xor_sync of " + here(lane_zero_returns_text),
         "thread (32,0,0), which its mask names, has returned"});
    require_parts(failure_of_kernel({1, 64}, lane_returns_late),
                  {"thread (40,0,0)",
                   "returned while lanes of its warp wait for it at the "
                   "__syncwarp of " +
                       here(lane_returns_late_text)});
}

constexpr int deadlock = __LINE__ + 3;
__global__ void wait_for_nobody() {
    if (threadIdx.x < 16)
        __syncwarp();
    else
        __syncthreads();
}

TEST_CASE("nobody is left to come") {
    require_parts(
        failure_of_kernel({dim3(1, 3), 32}, wait_for_nobody),
        {"wait_for_nobody()", "no thread of block (0,0,0) can go on",
         "thread (16,0,0) waits at the __syncthreads() of " + here(deadlock + 2),
         "lanes of warp 0 wait at the __syncwarp of " + here(deadlock), "nobody is left to come"});
}

// ---- The missing barrier

__global__ void shift_without_barrier(const int* in, int* out) {
    __shared__ int piece[64];
    piece[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = threadIdx.x == 0 ? 0 : piece[threadIdx.x - 1];  // no barrier before it
}

std::vector<int> shifted() {
    std::vector<int> in(64);
    for (int i = 0; i < 64; i++)
        in[static_cast<std::size_t>(i)] = 10 * i;
    Stream stream;
    Buffer<int> from(in), to(in.size());
    launch(stream, {1, 64}, shift_without_barrier, from.data(), to.data());
    stream.synchronize();
    return to.to_host_now();
}

bool is_shifted(const std::vector<int>& out) {
    for (int i = 1; i < 64; i++)
        if (out[static_cast<std::size_t>(i)] != 10 * (i - 1))
            return false;
    return true;
}

TEST_CASE("a missing barrier shows under another order of threads", "[order]") {
    if (thread_sanitizer) {
        std::cout << "SKIPPED: a missing barrier shows under another order of threads "
                     "(ThreadSanitizer names the race instead)\n";
        return;
    }
    using cuda_on_cpu::Order;
    const auto with = [](Order order, std::uint64_t seed = 1) {
        return With([=](cuda_on_cpu::Settings& to) { to.order = order, to.seed = seed; });
    };
    {
        const With forward = with(Order::forward);
        REQUIRE(is_shifted(shifted()));  // the mistake hides
    }
    {
        const With reversed = with(Order::reversed);
        const std::vector<int> out = shifted();
        REQUIRE_FALSE(is_shifted(out));
        REQUIRE(out[5] == -1);  // what fresh shared memory holds in strict mode
    }
    for (std::uint64_t seed : {1, 2, 3}) {
        const With random = with(Order::random, seed);
        REQUIRE_FALSE(is_shifted(shifted()));
        REQUIRE(shifted() == shifted());  // a seed names one order
    }
}

TEST_CASE("child shift without barrier", "[.child]") {
    shifted();
}

TEST_CASE("a missing barrier is named by ThreadSanitizer", "[race]") {
    if (!thread_sanitizer) {
        std::cout << "SKIPPED: a missing barrier is named by ThreadSanitizer (needs the preset "
                     "cpu-tsan)\n";
        return;
    }
    const ChildResult child = run_child("child shift without barrier");
    require_parts(child.output,
                  {"ThreadSanitizer: data race", "shift_without_barrier", "diagnoses_test.cu"});
    REQUIRE(child.exit_code != 0);
}

// ---- Memory, touched by kernels

__global__ void write_at(int* data, long index) {
    data[index] = 7;
}

struct Hidden {  // pointers inside a struct are not checked at the launch
    int* data;
};
__attribute__((no_sanitize("undefined"))) __global__ void read_hidden(Hidden from, int* to) {
    *to = *from.data;
}

TEST_CASE("allocations that fill 256 MiB each do not share a place in the first cache") {
    constexpr std::size_t hashed_bytes = std::size_t{1} << 28, guards = 2 * 4096;
    const Buffer<char> one(hashed_bytes - guards), two(hashed_bytes - guards);
    const auto place = [](const Buffer<char>& buffer) {
        return reinterpret_cast<std::uintptr_t>(buffer.data()) % hashed_bytes / 4096;
    };
    REQUIRE(place(one) != place(two));
}

TEST_CASE("a kernel writes beside its allocation") {
    struct Case {
        std::size_t size;
        long index;
        std::string said;
    };
    const std::vector<Case> cases = {
        {5, 5, "wrote 0 bytes past the end of the 20 bytes"},  // the red zone
        {5, 8, "wrote 12 bytes past the end of the 20 bytes"},
        {5, 70, "wrote 260 bytes past the end of the 20 bytes"},  // the closed page
        {5, -1, "wrote 4 bytes before the start of the 20 bytes"},
        {64, 64, "wrote 0 bytes past the end of the 256 bytes"},  // no padding
        {1024, -3, "wrote 12 bytes before the start of the 4096 bytes"},
        {100'000, 100'000, "wrote 0 bytes past the end of the 400000 bytes"},
    };
    for (const Case& c : cases) {
        const int line = __LINE__ + 3;
        const std::string message = failure_of([&] {
            Stream stream;
            Buffer<int> data(c.size);
            launch(stream, {1, 1}, write_at, data.data(), c.index);
            stream.synchronize();
        });
        require_parts(message, {"cudaErrorIllegalAddress",
                                "write_at(int*, long), launched at " + here(line + 1),
                                c.said + " that cudaMalloc at " + here(line) + " gave"});
    }
}

__global__ void copy_at(const int* from, long source, int* to, long destination) {
    to[destination] = from[source];
}

TEST_CASE("a kernel copies what lies beside an allocation") {
    for (const auto& [source, destination, within_one] :
         {std::tuple(5l, 5l, false), {6l, 5l, false}, {6l, 5l, true}, {-1l, -1l, false}}) {
        CAPTURE(source, destination, within_one);
        const std::string message = failure_of([&] {
            Stream stream;
            Buffer<int> from(5), to(5);
            launch(stream, {1, 1}, copy_at, within_one ? to.data() : from.data(), source, to.data(),
                   destination);
            stream.synchronize();
        });
        require_parts(message, {destination < 0 ? "wrote 4 bytes before the start of the 20 bytes"
                                                : "wrote 0 bytes past the end of the 20 bytes"});
    }
}

// Returns the lowest address of this process's mapping that holds `address`.
std::uintptr_t begin_of_mapping(const void* address) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        std::istringstream words(line);
        std::uintptr_t begin = 0, end = 0;
        char dash = 0;
        words >> std::hex >> begin >> dash >> end;
        if (const auto here = reinterpret_cast<std::uintptr_t>(address);
            begin <= here && here < end)
            return begin;
    }
    return 0;
}
TEST_CASE("a thread's stack is guarded by one page, and what lies below is not its own") {
    bool guard_is_its_own = false, next_page_is_its_own = true;
    std::thread([&] {
        const cuda_on_cpu::Fiber own;
        const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
        const std::uintptr_t bottom = begin_of_mapping(&own);
        guard_is_its_own = own.is_overflow(reinterpret_cast<void*>(bottom - 1));
        // Device memory may begin here: a write beside it was once taken for an overrun of the
        // stack.
        next_page_is_its_own = own.is_overflow(reinterpret_cast<void*>(bottom - page - 1));
    }).join();
    REQUIRE(guard_is_its_own);
    REQUIRE_FALSE(next_page_is_its_own);
}

TEST_CASE("a write beside an allocation shows in plain mode when it is freed") {
    const With plain([](cuda_on_cpu::Settings& to) { to.strict = false; });
    // Wherever it lies: the known bytes come from the address, and none may be that of a small
    // number.
    for (int i = 0; i < 512; i++) {
        int line = 0;
        const std::string message = failure_of([&] {
            Stream stream;
            int* data = nullptr;
            DDP_CHECK(cudaMalloc(&data, 20));
            launch(stream, {1, 1}, write_at, data, 5);
            stream.synchronize();
            line = __LINE__ + 1;
            DDP_CHECK(cudaFree(data));
        });
        require_parts(message, {"a kernel wrote 0 bytes past the end of the 20 bytes",
                                "noticed by cudaFree at " + here(line)});
    }
}

TEST_CASE("memory that was freed") {
    int freed_at = 0;
    const std::string inside = failure_of([&] {
        Stream stream;
        Buffer<int> to(1);
        int* data = nullptr;
        DDP_CHECK(cudaMalloc(&data, 40));
        freed_at = __LINE__ + 1;
        DDP_CHECK(cudaFree(data));
        launch(stream, {1, 1}, read_hidden, Hidden{data + 2}, to.data());
        stream.synchronize();
    });
    require_parts(inside,
                  {"read_hidden", "thread (0,0,0) of block (0,0,0) read byte 8 of the 40 bytes",
                   here(freed_at - 2), "which was freed at " + here(freed_at)});
    const std::string as_argument = message_of([&] {
        Stream stream;
        int* data = nullptr;
        DDP_CHECK(cudaMalloc(&data, 40));
        freed_at = __LINE__ + 1;
        DDP_CHECK(cudaFree(data));
        launch(stream, {1, 1}, write_at, data, 0);
    });
    require_parts(as_argument, {"write_at(int*, long), launched at " + here(freed_at + 1),
                                "pointer argument 1 is not device memory: byte 0 of the 40 bytes",
                                "which was freed at " + here(freed_at)});
}

TEST_CASE("memory that a kernel cannot have") {
    const std::string host = message_of([] {
        Stream stream;
        std::vector<int> data(3);
        launch(stream, {1, 1}, write_at, data.data(), 0);
    });
    require_parts(host, {"write_at(int*, long)", "pointer argument 1 is not device memory",
                         "host memory, or a wild pointer"});
    const std::string null = failure_of([] {
        Stream stream;
        Buffer<int> to(1);
        launch(stream, {1, 64}, read_hidden, Hidden{nullptr}, to.data());
        stream.synchronize();
    });
    require_parts(null, {"read_hidden", "thread (0,0,0) of block (0,0,0) read a null pointer"});
}

__device__ __attribute__((noinline)) int deeper(volatile int* level) {
    volatile int frame[200];
    frame[*level % 200] = *level;
    *level = *level + 1;
    return *level > 1'000'000 ? 0 : deeper(level) + frame[(*level - 1) % 200];
}
__global__ void overflow_stack(int* levels) {
    levels[threadIdx.x] = 0;
    __syncthreads();
    deeper(levels + threadIdx.x);
}

__global__ void overrun_shared(int past) {
    dynamic_shared<int>()[threadIdx.x + static_cast<unsigned int>(past)] = 1;
}

TEST_CASE("a kernel overruns its stack or its shared memory") {
    for (unsigned int block : {1u, 2u}) {
        const std::string message = failure_of([&] {
            Stream stream;
            Buffer<int> levels(block);
            launch(stream, {1, block}, overflow_stack, levels.data());
            stream.synchronize();
        });
        require_parts(message, {"cudaErrorHardwareStackError", "overflow_stack(int*)",
                                "of stack: keep large arrays in shared or device memory"});
    }
    require_parts(failure_of_kernel({1, 16, 64}, overrun_shared, 1),
                  {"overrun_shared(int)", "thread (15,0,0)",
                   "wrote past the end of the 64 bytes of dynamic shared memory"});
}

}  // namespace
}  // namespace ddp::test
