// Strict mode: what a GPU's driver may do, and hardly ever does, is done here each time.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cuda/atomic>
#include <thread>
#include <vector>

#include "common/gpu/gpu.hpp"
#include "common/report/bench.hpp"
#include "cuda_on_cpu/settings.hpp"
#include "tests/support/catch.hpp"

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

// The other thread comes to its call within some milliseconds, and then this one's launch takes the
// rest of the time.
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

TEST_CASE("a full launch queue keeps other launches out") {
    Buffer<int> numbers(std::vector<int>{1, 2});
    REQUIRE(longest_launch_beside([&](Stream& waiting) {
                for (int i = 0; i < 1100; i++)
                    launch(waiting, {1, 1}, copy_number, numbers.data(), numbers.data() + 1);
                waiting.synchronize();
            }) > long_s);
}

TEST_CASE("a handle of cuBLAS is not made and not destroyed while a kernel may wait for another") {
    Stream stream;
    PinnedBuffer<int> flag(1);
    flag[0] = 0;
    cublasHandle_t before = nullptr, beside = nullptr;
    DDP_CHECK(cublasCreate(&before));
    launch_cooperative(stream, {1, 1}, wait_for_opening, flag.data());
    REQUIRE(cublasCreate(&beside) != CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasDestroy(before) != CUBLAS_STATUS_SUCCESS);
    const std::string said = cudaGetErrorString(cudaGetLastError());
    SystemFlag(flag[0]).store(1, cuda::memory_order_release);
    stream.synchronize();
    REQUIRE(
        said.find("cublasDestroy (synchronises with the device) while the cooperative kernel") !=
        std::string::npos);
    DDP_CHECK(cublasDestroy(before));
}

// Enqueues the product of two matrices of n x n.
cublasStatus_t multiply(cublasHandle_t handle, int n, float* matrices) {
    const float one = 1, zero = 0;
    return cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, matrices, n, matrices, n,
                       &zero, matrices + n * n, n);
}

// The CPU plays a GPU of 20 multiprocessors while this object lives.
struct PlayedGpu {
    explicit PlayedGpu(const char* loading) {
        cuda_on_cpu::Settings changed = usual;
        changed.multiprocessors = 20;
        cuda_on_cpu::set_settings(changed);
        setenv("CUDA_MODULE_LOADING", loading, 1);
    }
    ~PlayedGpu() {
        setenv("CUDA_MODULE_LOADING", "EAGER", 1);
        cuda_on_cpu::set_settings(usual);
    }
    const cuda_on_cpu::Settings usual = cuda_on_cpu::settings();
};

TEST_CASE("a GPU loads no kernel for a product while a kernel may wait for another") {
    Stream stream, other;
    PinnedBuffer<int> flag(1);
    flag[0] = 0;
    Buffer<float> matrices(std::vector<float>(2 * 5 * 5));
    cublasHandle_t handle = nullptr;
    DDP_CHECK(cublasCreate(&handle));
    DDP_CHECK(cublasSetStream(handle, other));
    {
        const PlayedGpu gpu("EAGER");
        DDP_CHECK(multiply(handle, 3, matrices.data()));
        launch_cooperative(stream, {1, 1}, wait_for_opening, flag.data());
        REQUIRE(multiply(handle, 3, matrices.data()) == CUBLAS_STATUS_SUCCESS);
        REQUIRE(multiply(handle, 5, matrices.data()) != CUBLAS_STATUS_SUCCESS);
        const std::string said = cudaGetErrorString(cudaGetLastError());
        REQUIRE(said.find("(the first product of 5 x 5 x 5, whose kernel must be loaded) while the "
                          "cooperative kernel") != std::string::npos);
        REQUIRE(said.find("; compute one of this shape before") != std::string::npos);
    }
    REQUIRE(multiply(handle, 4, matrices.data()) == CUBLAS_STATUS_SUCCESS);  // a CPU
    SystemFlag(flag[0]).store(1, cuda::memory_order_release);
    stream.synchronize();
    DDP_CHECK(cublasDestroy(handle));
}

__global__ void never_launched_before(int* number) {
    *number = 1;
}

TEST_CASE("a GPU that loads lazily loads no kernel while another one may wait") {
    Stream stream, other;
    PinnedBuffer<int> flag(1);
    flag[0] = 0;
    Buffer<int> number(std::vector<int>{0});
    launch_cooperative(stream, {1, 1}, wait_for_opening, flag.data());
    const auto is_refused = [&] {
        try {
            launch(other, {1, 1}, never_launched_before, number.data());
            return false;
        } catch (const GpuError& error) {
            return std::string(error.what())
                       .find("its first launch, for which it must be loaded") != std::string::npos;
        }
    };
    {
        const PlayedGpu gpu("LAZY");
        REQUIRE(is_refused());
    }
    {
        const PlayedGpu gpu("EAGER");
        REQUIRE_FALSE(is_refused());
    }
    SystemFlag(flag[0]).store(1, cuda::memory_order_release);
    stream.synchronize();
    other.synchronize();
    REQUIRE(number.to_host_now()[0] == 1);
}

TEST_CASE("some kernels that wait for others end late, and not all") {
    const cuda_on_cpu::Settings usual = cuda_on_cpu::settings();
    cuda_on_cpu::Settings changed = usual;
    changed.late_ms = 5;
    cuda_on_cpu::set_settings(changed);
    constexpr int launches = 64;
    Stream stream;
    Buffer<int> numbers(std::vector<int>{1, 2});
    int late = 0;
    for (int i = 0; i < launches; i++) {
        const Stopwatch watch;
        launch_cooperative(stream, {1, 1}, copy_number, numbers.data(), numbers.data() + 1);
        stream.synchronize();
        late += watch.seconds() >= 0.005;
    }
    cuda_on_cpu::set_settings(usual);
    REQUIRE(late >= launches / 16);
    REQUIRE(late < launches);
}

}  // namespace
}  // namespace ddp::test
