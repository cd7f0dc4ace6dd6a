// Strict mode: what a GPU's driver may do, and hardly ever does, is done here each time.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda/atomic>
#include <functional>
#include <thread>
#include <vector>

#include "common/report/bench.hpp"
#include "tests/common/runtime/contracted.hpp"
#include "tests/common/runtime/diagnoses.hpp"
#include "tests/support/child.hpp"

namespace ddp::test {
namespace {

using SystemFlag = cuda::atomic_ref<int, cuda::thread_scope_system>;

__global__ void wait_for_opening(int* flag) {
    SystemFlag opened(*flag);
    while (opened.load(cuda::memory_order_acquire) == 0)
        __nanosleep(1000);
}

__global__ void copy_number(const int* from, int* to) {
    *to = *from;
}

TEST_CASE("a copy from memory that is not pinned may be under way when the call returns") {
    constexpr int number = 41;
    Stream stream;
    Buffer<int> data(1), seen(1);
    const auto look = [&] {
        launch(stream, {1, 1}, copy_number, data.data(), seen.data());
        stream.synchronize();
        return seen.to_host_now()[0];
    };
    SECTION("by the default stream, for which no other stream waits") {
        DDP_CHECK(cudaMemcpy(data.data(), &number, sizeof number, cudaMemcpyHostToDevice));
        REQUIRE(look() == -1);  // fresh memory
        DDP_CHECK(cudaStreamSynchronize(nullptr));
        REQUIRE(look() == number);
    }
    SECTION("by another stream") {
        Stream copies;
        DDP_CHECK(
            cudaMemcpyAsync(data.data(), &number, sizeof number, cudaMemcpyHostToDevice, copies));
        REQUIRE(look() == -1);
        copies.synchronize();
        REQUIRE(look() == number);
    }
    SECTION("what the stream does next comes after it") {
        DDP_CHECK(
            cudaMemcpyAsync(data.data(), &number, sizeof number, cudaMemcpyHostToDevice, stream));
        REQUIRE(look() == number);
    }
    SECTION("who asks whether it is done is told so in the end") {
        Stream copies;
        DDP_CHECK(
            cudaMemcpyAsync(data.data(), &number, sizeof number, cudaMemcpyHostToDevice, copies));
        while (forget_not_ready(cudaStreamQuery(copies)) == cudaErrorNotReady)
            std::this_thread::yield();
        REQUIRE(look() == number);
    }
    SECTION("the book's copies are done") {
        copy_to_device(data.data(), &number, sizeof number);
        REQUIRE(look() == number);
    }
}

// Returns the longest time that a launch of this thread took, in seconds, while another thread is
// in call(stream). A kernel waits at the head of that stream for 0.2 s.
template <class Call>
double longest_launch_beside(Call call) {
    Stream waiting, other;
    PinnedBuffer<int> flag(1);
    Buffer<int> numbers(std::vector<int>{1, 2});
    flag[0] = 0;
    launch(waiting, {1, 1}, wait_for_opening, flag.data());
    std::atomic<bool> is_open = false;
    std::thread caller([&] { call(waiting); });
    std::thread opener([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        is_open = true;
        SystemFlag(flag[0]).store(1, cuda::memory_order_release);
    });
    double longest_s = 0;
    while (!is_open) {
        const Stopwatch watch;
        launch(other, {1, 1}, copy_number, numbers.data(), numbers.data() + 1);
        longest_s = std::max(longest_s, watch.seconds());
        other.synchronize();
    }
    caller.join();
    opener.join();
    return longest_s;
}

// The other thread comes to its call within milliseconds; then a launch takes the rest of the time.
constexpr double long_s = 0.02;

TEST_CASE("a copy to memory that is not pinned keeps other launches out while it waits") {
    Buffer<int> data(std::vector<int>{3});
    int host = 0;
    REQUIRE(longest_launch_beside([&](Stream& waiting) {
                DDP_CHECK(cudaMemcpyAsync(&host, data.data(), sizeof host, cudaMemcpyDeviceToHost,
                                          waiting));
            }) > long_s);
    REQUIRE(host == 3);
}

TEST_CASE(
    "a copy from memory that is not pinned waits for its stream, and one from pinned does not") {
    Buffer<int> data(std::vector<int>{3});
    const int pageable = 4;
    PinnedBuffer<int> pinned(1);
    pinned[0] = 5;
    const auto copy_from = [&](const int* from) {
        return longest_launch_beside([&, from](Stream& waiting) {
            DDP_CHECK(
                cudaMemcpyAsync(data.data(), from, sizeof(int), cudaMemcpyHostToDevice, waiting));
            waiting.synchronize();
        });
    };
    REQUIRE(copy_from(&pageable) > long_s);
    REQUIRE(data.to_host_now()[0] == 4);
    REQUIRE(copy_from(pinned.data()) < 0.2);
    REQUIRE(data.to_host_now()[0] == 5);
}

TEST_CASE("a full launch queue keeps other launches out") {
    Buffer<int> numbers(std::vector<int>{1, 2});
    REQUIRE(longest_launch_beside([&](Stream& waiting) {
                for (int i = 0; i < 1100; i++)
                    launch(waiting, {1, 1}, copy_number, numbers.data(), numbers.data() + 1);
                waiting.synchronize();
            }) > long_s);
}

// A kernel that waits, on so many blocks, until the host opens.
class Waiting {
  public:
    explicit Waiting(unsigned int blocks = 1) {
        flag_[0] = 0;
        launch_cooperative(stream, {blocks, 1}, wait_for_opening, flag_.data());
    }
    ~Waiting() { open(); }
    void open() {
        SystemFlag(flag_[0]).store(1, cuda::memory_order_release);
        DDP_CHECK(cudaDeviceSynchronize());
    }
    Stream stream;

  private:
    PinnedBuffer<int> flag_{1};
};

TEST_CASE("a handle of cuBLAS is not made and not destroyed while a kernel may wait for another") {
    cublasHandle_t before = nullptr, beside = nullptr;
    DDP_CHECK(cublasCreate(&before));
    Waiting waiting;
    REQUIRE(cublasCreate(&beside) != CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasDestroy(before) != CUBLAS_STATUS_SUCCESS);
    require_parts(cudaGetErrorString(cudaGetLastError()),
                  {"cublasDestroy (synchronises with the device) while the cooperative kernel"});
    waiting.open();
    DDP_CHECK(cublasDestroy(before));
}

// Enqueues the product of two matrices of n x n.
cublasStatus_t multiply(cublasHandle_t handle, int n, float* matrices) {
    const float one = 1, zero = 0;
    return cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, matrices, n, matrices, n,
                       &zero, matrices + n * n, n);
}

// The CPU plays a GPU of 20 multiprocessors while this object lives.
struct PlayedGpu : With {
    explicit PlayedGpu(const char* loading)
        : With([](cuda_on_cpu::Settings& to) { to.multiprocessors = 20; }) {
        setenv("CUDA_MODULE_LOADING", loading, 1);
    }
    ~PlayedGpu() { setenv("CUDA_MODULE_LOADING", "EAGER", 1); }
};

TEST_CASE("a GPU loads no kernel for a product while a kernel may wait for another") {
    Stream other;
    Buffer<float> matrices(std::vector<float>(2 * 5 * 5));
    cublasHandle_t handle = nullptr;
    DDP_CHECK(cublasCreate(&handle));
    DDP_CHECK(cublasSetStream(handle, other));
    {
        const PlayedGpu gpu("EAGER");
        DDP_CHECK(multiply(handle, 3, matrices.data()));
        const Waiting waiting;
        REQUIRE(multiply(handle, 3, matrices.data()) == CUBLAS_STATUS_SUCCESS);
        REQUIRE(multiply(handle, 5, matrices.data()) != CUBLAS_STATUS_SUCCESS);
        require_parts(cudaGetErrorString(cudaGetLastError()),
                      {"(the first product of 5 x 5 x 5, whose kernel must be loaded) while the "
                       "cooperative kernel",
                       "; compute one of this shape before"});
    }
    Waiting waiting;
    REQUIRE(multiply(handle, 4, matrices.data()) == CUBLAS_STATUS_SUCCESS);  // a CPU
    waiting.open();
    DDP_CHECK(cublasDestroy(handle));
}

__global__ void never_launched_before(int* number) {
    *number = 1;
}

TEST_CASE("a GPU that loads lazily loads no kernel while another one may wait") {
    Stream other;
    Event first;
    first.record(other);  // no kernel is the first command of a stream
    Buffer<int> number(std::vector<int>{0});
    Waiting waiting;
    const auto is_refused = [&] {
        return has(message_of([&] {
                       launch(other, {1, 1}, never_launched_before, number.data());
                   }),
                   "its first launch, for which it must be loaded");
    };
    {
        const PlayedGpu gpu("LAZY");
        REQUIRE(is_refused());
    }
    {
        const PlayedGpu gpu("EAGER");
        REQUIRE_FALSE(is_refused());
    }
    waiting.open();
    REQUIRE(number.to_host_now()[0] == 1);
}

TEST_CASE("only an event may be the first command of a stream while a kernel may wait") {
    Buffer<int> numbers(std::vector<int>{1, 2, 3});
    const PlayedGpu gpu("EAGER");
    cudaStream_t unused = nullptr;
    DDP_CHECK(cudaStreamCreateWithFlags(&unused, cudaStreamNonBlocking));
    Stream other;  // has carried out a command
    Waiting waiting;
    const std::vector<std::function<void(cudaStream_t)>> commands = {
        [&](cudaStream_t to) {
            launch(to, {1, 1}, copy_number, numbers.data(), numbers.data() + 1);
        },
        [&](cudaStream_t to) {
            DDP_CHECK(cudaMemsetAsync(numbers.data() + 2, 0, sizeof(int), to));
        },
        [&](cudaStream_t to) {
            DDP_CHECK(cudaMemcpyAsync(numbers.data() + 2, numbers.data(), sizeof(int),
                                      cudaMemcpyDeviceToDevice, to));
        }};
    for (const auto& command : commands) {
        command(other);
        require_parts(message_of([&] { command(unused); }),
                      {"(the first command of its stream) while the cooperative kernel",
                       "; let each stream carry out an event right after it is made"});
    }
    Event first;
    DDP_CHECK(cudaEventRecord(first, unused));
    commands[0](unused);
    waiting.open();
    DDP_CHECK(cudaStreamDestroy(unused));
    REQUIRE(numbers.to_host_now()[1] == 1);
}

TEST_CASE("an event takes the room of 17 kernels in a launch queue") {
    const With queue([](cuda_on_cpu::Settings& to) { to.depth = 1 + 2 * 17 + 5; });
    Buffer<int> numbers(std::vector<int>{1, 2});
    // Beside a kernel that waits.
    const auto enqueue = [&](int events, int kernels) {
        return longest_launch_beside([&, events, kernels](Stream& waiting) {
            std::vector<Event> recorded(static_cast<std::size_t>(events));
            for (Event& event : recorded)
                event.record(waiting);
            for (int i = 0; i < kernels; i++)
                launch(waiting, {1, 1}, copy_number, numbers.data(), numbers.data() + 1);
            waiting.synchronize();
        });
    };
    REQUIRE(enqueue(2, 5) < 0.2);
    REQUIRE(enqueue(2, 6) > long_s);
}

TEST_CASE("the end of a process says how full a launch queue was behind a kernel that waits") {
    const ChildResult result = run_child("two events and five kernels", {"CUDA_ON_CPU=depth=100"});
    require_parts(result.output, {"a launch queue held up to 40 of 100"});
}
TEST_CASE("two events and five kernels", "[.child]") {
    Buffer<int> numbers(std::vector<int>{1, 2});
    Event events[2];
    Waiting waiting;
    for (Event& event : events)
        event.record(waiting.stream);
    for (int i = 0; i < 5; i++)
        launch(waiting.stream, {1, 1}, copy_number, numbers.data(), numbers.data() + 1);
}

#if !defined(__SANITIZE_THREAD__)  // where loads are not counted
TEST_CASE("many blocks that poll the host's memory are named at the end, and one is not") {
    const auto said_of = [](const std::string& name) {
        return run_child(name, {"CUDA_ON_CPU=strict,polls"}).output;
    };
    const std::string many = said_of("16 blocks poll");
    CAPTURE(many);
    REQUIRE(
        many.find("16 blocks of kernel ddp::test::wait_for_opening(int*), launched at tests/") !=
        std::string::npos);
    REQUIRE(said_of("1 block polls").find("polled") == std::string::npos);
}
TEST_CASE("16 blocks poll", "[.child]") {
    Waiting waiting(16);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
}
TEST_CASE("1 block polls", "[.child]") {
    Waiting waiting;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
}
#endif

TEST_CASE(
    "a process's first copy to memory that is not pinned is not made beside a kernel that waits") {
    const ChildResult result = run_child("a first copy");
    CAPTURE(result.output);
    REQUIRE(result.exit_code == 0);
}
TEST_CASE("a first copy", "[.child]") {
    Buffer<int> data(std::vector<int>{3});
    int host = 0;
    const PlayedGpu gpu("EAGER");
    const Waiting waiting;
    REQUIRE(cudaMemcpy(&host, data.data(), sizeof host, cudaMemcpyDeviceToHost) ==
            cudaErrorNotPermitted);
    require_parts(cudaGetErrorString(cudaGetLastError()),
                  {"(the process's first copy to memory that is not pinned) while the "
                   "cooperative kernel"});
}

TEST_CASE("a slow host takes its time for each launch, and one that hiccups for a few") {
    Buffer<int> numbers(std::vector<int>{1, 2});
    Stream stream;
    const auto seconds_of = [&](int launches) {
        const Stopwatch watch;
        for (int i = 0; i < launches; i++)
            launch(stream, {1, 1}, copy_number, numbers.data(), numbers.data() + 1);
        return watch.seconds();
    };
    {
        const With slow([](cuda_on_cpu::Settings& to) { to.slow_host_us = 2000; });
        REQUIRE(seconds_of(50) >= 0.1);
    }
    const With hiccups([](cuda_on_cpu::Settings& to) { to.hiccup_ms = 100; });
    REQUIRE(seconds_of(199) >= 0.1);
    stream.synchronize();
}

TEST_CASE("some kernels that wait for others end late, and not all") {
    const With late([](cuda_on_cpu::Settings& to) { to.late_ms = 5; });
    constexpr int launches = 64;
    Stream stream;
    Buffer<int> numbers(std::vector<int>{1, 2});
    int count = 0;
    for (int i = 0; i < launches; i++) {
        const Stopwatch watch;
        launch_cooperative(stream, {1, 1}, copy_number, numbers.data(), numbers.data() + 1);
        stream.synchronize();
        count += watch.seconds() >= 0.005;
    }
    REQUIRE(count >= launches / 16);
    REQUIRE(count < launches);
}

__global__ void sleep_often(unsigned int nanoseconds, double* shortest_ms) {
    for (int i = 0; i < 50; i++) {
        const Stopwatch watch;
        __nanosleep(nanoseconds);
        *shortest_ms = std::min(*shortest_ms, 1e3 * watch.seconds());
    }
}

TEST_CASE("with threads in a random order, a sleep may be shorter than it is told") {
    const With random([](cuda_on_cpu::Settings& to) { to.order = cuda_on_cpu::Order::random; });
    Stream stream;
    Buffer<double> shortest_ms(std::vector<double>{1e9});
    launch(stream, {1, 1}, sleep_often, 1'000'000u, shortest_ms.data());
    stream.synchronize();
    REQUIRE(shortest_ms.to_host_now()[0] < 0.9);
}

// ---- A crowded GPU

// Waits until the flag is raised, and writes what stood at `result` by then.
__global__ void look_when_opened(int* flag, int* result, int* seen, int* begun) {
    SystemFlag(*begun).store(1);
    SystemFlag opened(*flag);
    while (opened.load(cuda::memory_order_acquire) == 0)
        __nanosleep(1000);
    if (blockIdx.x == 0)
        *seen = SystemFlag(*result).load(cuda::memory_order_acquire);
}
__global__ void write_one(int* result) {
    SystemFlag(*result).store(1, cuda::memory_order_release);
}

// Returns whether what second() launches on its stream, to write 1 to `result`, has run before the
// kernel that first() launches has ended. The second one has a fifth of a second for it.
class SideBySide {
  public:
    template <class First, class Second>
    bool operator()(Stream& second_stream, First first, Second second) {
        flags_[0] = flags_[1] = flags_[2] = flags_[3] = 0;
        first(&flags_[0], &flags_[1], &flags_[2], &flags_[3]);
        while (SystemFlag(flags_[3]).load() == 0)
            std::this_thread::yield();
        second(&flags_[1]);
        const Stopwatch watch;
        while (forget_not_ready(cudaStreamQuery(second_stream)) == cudaErrorNotReady &&
               watch.seconds() < 0.2)
            std::this_thread::yield();
        SystemFlag(flags_[0]).store(1, cuda::memory_order_release);
        DDP_CHECK(cudaDeviceSynchronize());
        REQUIRE(flags_[1] == 1);
        return flags_[2] == 1;
    }

  private:
    PinnedBuffer<int> flags_{4};
};

TEST_CASE("streams that share a launch queue stand behind each other") {
    SideBySide side_by_side;
    Event behind;
    const auto are_side_by_side = [&](Stream& a, Stream& b, bool has_event) {
        return side_by_side(
            b,
            [&](int* flag, int* result, int* seen, int* begun) {
                launch(a, {1, 1}, look_when_opened, flag, result, seen, begun);
                if (has_event)
                    behind.record(a);
            },
            [&](int* result) {
                launch(b, {1, 1}, write_one, result);
            });
    };
    const With queues([](cuda_on_cpu::Settings& to) { to.queues = 2; });
    Stream streams[3];
    REQUIRE(are_side_by_side(streams[0], streams[2], false));  // a kernel that runs keeps nobody
    REQUIRE_FALSE(are_side_by_side(streams[0], streams[2], true));  // what waits for its end does
    REQUIRE(are_side_by_side(streams[0], streams[1], true));        // in another queue
    Event kept;
    {
        Stream gone;
        kept.record(gone);
        gone.synchronize();
    }               // its queue is free again, although an event remembers it
    Stream fourth;  // takes the queue of the fewest
    REQUIRE(are_side_by_side(streams[0], fourth, true));
    REQUIRE_FALSE(are_side_by_side(streams[1], fourth, true));
    REQUIRE(device_limits().queues == 2);
}

TEST_CASE("blocks of ordinary launches hold the multiprocessors of a crowded GPU") {
    SideBySide side_by_side;
    Stream first, second;
    const auto are_side_by_side = [&](unsigned int blocks) {
        return side_by_side(
            second,
            [&](int* flag, int* result, int* seen, int* begun) {
                launch(first, {blocks, 1}, look_when_opened, flag, result, seen, begun);
            },
            [&](int* result) {
                launch_cooperative(second, {1, 1}, write_one, result);
            });
    };
    const With gpu([](cuda_on_cpu::Settings& to) {
        to.multiprocessors = 4;
        to.crowded = true;
    });
    REQUIRE(are_side_by_side(3));
    REQUIRE_FALSE(are_side_by_side(4));
}

// Each block waits for the others, and counts itself as late if they do not come.
__global__ void meet_blocks(int* arrived, int* late) {
    SystemFlag here(*arrived);
    here.fetch_add(1);
    for (int polls = 0; here.load() < static_cast<int>(gridDim.x); polls++) {
        if (polls == 10000) {
            SystemFlag(*late).fetch_add(1);
            return;
        }
        __nanosleep(100000);
    }
}

TEST_CASE("blocks of an ordinary launch run at the same time on a crowded GPU") {
    const With gpu([](cuda_on_cpu::Settings& to) {
        to.multiprocessors = 4;
        to.crowded = true;
    });
    Stream stream;
    Buffer<int> counts(std::vector<int>{0, 0});
    launch(stream, {4, 1}, meet_blocks, counts.data(), counts.data() + 1);
    stream.synchronize();
    REQUIRE(counts.to_host_now() == std::vector<int>{4, 0});
}

TEST_CASE("a driver waits in calls that may wait, and keeps other launches out") {
    const With waits([](cuda_on_cpu::Settings& to) { to.waits = true; });
    void *memory = nullptr, *pinned = nullptr;
    DDP_CHECK(cudaMalloc(&memory, 64));
    cublasHandle_t handle = nullptr;
    REQUIRE(longest_launch_beside([&](Stream&) { DDP_CHECK(cudaFree(memory)); }) > long_s);
    REQUIRE(longest_launch_beside([&](Stream&) { DDP_CHECK(cudaMallocHost(&pinned, 64)); }) >
            long_s);
    REQUIRE(longest_launch_beside([&](Stream&) { DDP_CHECK(cudaFreeHost(pinned)); }) > long_s);
    REQUIRE(longest_launch_beside([&](Stream&) { DDP_CHECK(cublasCreate(&handle)); }) > long_s);
    REQUIRE(longest_launch_beside([&](Stream&) { DDP_CHECK(cublasDestroy(handle)); }) > long_s);
    REQUIRE(longest_launch_beside([&](Stream&) { Stream another; }) > long_s);
}

// ---- A compiler for GPUs

TEST_CASE("a kernel that is compiled as nvcc would rounds a product and a sum once") {
    // (1 + e)^2 is 1 + 2e + e^2, of which a product alone keeps 1 + 2e.
    constexpr float e = 1.0f / 4096, product_alone = 1 + 2 * e;
    const std::vector<float> values = {1 + e, 1 + e, -product_alone};
    REQUIRE(product_and_sum(values) == 0);
    if (has_fused_multiply_add())
        REQUIRE(contracted_product_and_sum(values) == e * e);
    else
        std::puts(
            "SKIPPED: this processor has no fused multiply-add, or is not used by this build");
}

// ---- Two GPUs

struct Pair {
    int first;
    int* pointer;
};
__global__ void write_through(Pair pair) {
    *pair.pointer = pair.first;
}

TEST_CASE("a kernel uses the memory of another device only if it was allowed to",
          "[.two_devices]") {
    DDP_CHECK(cudaSetDevice(1));
    Buffer<int> of_1(std::vector<int>{5});
    Stream stream_1;
    launch(stream_1, {1, 1}, write_through, Pair{6, of_1.data()});
    stream_1.synchronize();
    DDP_CHECK(cudaSetDevice(0));
    Buffer<int> of_0(std::vector<int>{0});
    Stream stream_0;
    const auto refusal = [&] {
        return message_of([&] { launch(stream_0, {1, 1}, write_through, Pair{7, of_1.data()}); });
    };
    require_parts(refusal(), {"device 0 has no access to device 1, where byte 0 of the 4 bytes"});
    REQUIRE(of_1.to_host_now()[0] == 6);
    // A copy between devices takes another way.
    DDP_CHECK(cudaMemcpy(of_0.data(), of_1.data(), sizeof(int), cudaMemcpyDeviceToDevice));
    REQUIRE(of_0.to_host_now()[0] == 6);
    DDP_CHECK(cudaDeviceEnablePeerAccess(1, 0));
    REQUIRE(refusal() == "(nothing was said)");
    stream_0.synchronize();
    REQUIRE(of_1.to_host_now()[0] == 7);
    DDP_CHECK(cudaDeviceDisablePeerAccess(1));
    REQUIRE(refusal() != "(nothing was said)");
}

}  // namespace
}  // namespace ddp::test
