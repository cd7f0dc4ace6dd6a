// What a beginner does wrong on the host, and what is said about it: each mistake is made here, and
// its message read. For the CPU only. Mistakes that end the process are made in a child process.
#include <cublas_v2.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cuda/atomic>
#include <initializer_list>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cuda_on_cpu/observe.hpp"
#include "tests/common/runtime/diagnoses.hpp"
#include "tests/support/child.hpp"

namespace ddp::test {
namespace {

// ---- Memory, touched by the host

__global__ void write_second(int* data) {
    data[1] = 7;
}

TEST_CASE("child host reads device memory", "[.child]") {
    Buffer<int> data(std::vector<int>{1, 2, 3});
    std::cout << data.data()[2] << std::endl;
}

TEST_CASE("child host writes device memory", "[.child]") {
    Buffer<int> data(3);
    data.data()[1] = 4;
}

TEST_CASE("child host reads what a kernel wrote", "[.child]") {
    Stream stream;
    Buffer<int> data(3);
    launch(stream, {1, 1}, write_second, data.data());
    stream.synchronize();
    std::cout << data.data()[1] << std::endl;
}

TEST_CASE("child host function reads device memory", "[.child]") {
    Stream stream;
    Buffer<int> data(3);
    DDP_CHECK(cudaLaunchHostFunc(
        stream, [](void* pointer) { std::cout << *static_cast<int*>(pointer) << std::endl; },
        data.data()));
    stream.synchronize();
}

TEST_CASE("child wild pointer of the host", "[.child]") {
    Buffer<int> data(3);
    *reinterpret_cast<volatile int*>(0x1000) = 1;
}

TEST_CASE("the host touches device memory") {
    const std::string only = "only kernels and cudaMemcpy may touch device memory";
    const ChildResult reads = run_child("child host reads device memory");
    require_parts(reads.output, {"host code read byte 8 of the 12 bytes that cudaMalloc at " +
                                     here(0).substr(0, here(0).size() - 1),
                                 only});
    REQUIRE(reads.signal == SIGSEGV);
    const ChildResult writes = run_child("child host writes device memory");
    require_parts(writes.output, {"host code wrote byte 4 of the 12 bytes", only});
    REQUIRE(writes.signal == SIGSEGV);
    const ChildResult result = run_child("child host reads what a kernel wrote");
    require_parts(result.output, {"host code read byte 4 of the 12 bytes", only});
    REQUIRE(result.signal == SIGSEGV);
    const ChildResult function = run_child("child host function reads device memory");
    require_parts(function.output, {"host code read byte 0 of the 12 bytes", only});
    REQUIRE(function.signal == SIGSEGV);
    const ChildResult wild = run_child("child wild pointer of the host");  // none of ours
    REQUIRE(!has(wild.output, "cuda_on_cpu"));
    REQUIRE(wild.exit_code != 0);
}

// ---- Copies

TEST_CASE("copies that cannot be") {
    Buffer<int> device(std::vector<int>{1, 2, 3, 4, 5});
    PinnedBuffer<int> pinned(5);
    std::vector<int> host(5);
    const int line = __LINE__ + 2;
    const auto sentence = [&](void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
        return message_of([&] { DDP_CHECK(cudaMemcpy(to, from, bytes, kind)); });
    };
    require_parts(sentence(host.data(), device.data(), 20, cudaMemcpyHostToDevice),
                  {"cudaErrorInvalidMemcpyDirection",
                   "cudaMemcpy at " + here(line) + " says cudaMemcpyHostToDevice",
                   "the source is device memory and the destination is host memory",
                   "cudaMemcpyDeviceToHost"});
    require_parts(sentence(device.data(), pinned.data(), 20, cudaMemcpyDeviceToDevice),
                  {"the source is host memory and the destination is device memory"});
    require_parts(sentence(host.data(), device.data(), 20, static_cast<cudaMemcpyKind>(7)),
                  {"none of cudaMemcpyKind's"});
    require_parts(sentence(host.data(), device.data(), 24, cudaMemcpyDeviceToHost),
                  {"of 24 bytes: the source has only 20 left", "byte 0 of the 20 bytes"});
    require_parts(sentence(device.data() + 3, host.data(), 12, cudaMemcpyHostToDevice),
                  {"of 12 bytes: the destination has only 8 left", "byte 12 of the 20 bytes"});
    require_parts(sentence(device.data() + 6, host.data(), 4, cudaMemcpyHostToDevice),
                  {"the destination is 4 bytes past the end of the 20 bytes"});
    require_parts(sentence(host.data(), device.data() - 1, 4, cudaMemcpyDefault),
                  {"the source is 4 bytes before the start of the 20 bytes"});
    require_parts(sentence(pinned.data() + 1, device.data(), 20, cudaMemcpyDefault),
                  {"the destination has only 16 left", "cudaMallocHost"});
    require_parts(sentence(nullptr, device.data(), 4, cudaMemcpyDefault),
                  {"the destination is a null pointer"});
    require_parts(sentence(host.data(), nullptr, 4, cudaMemcpyDefault),
                  {"the source is a null pointer"});
    require_parts(message_of([&] { DDP_CHECK(cudaMemset(device.data(), 0, 21)); }),
                  {"cudaMemset at ", "of 21 bytes: the range has only 20 left"});
    require_parts(message_of([&] { DDP_CHECK(cudaMemset(host.data(), 0, 4)); }),
                  {"cudaMemset at ", "no allocation of CUDA's"});
    REQUIRE(device.to_host_now() ==
            std::vector<int>{1, 2, 3, 4, 5});  // none of them copied anything
}

TEST_CASE("a copy from memory that was freed") {
    int* data = nullptr;
    int host = 0;
    DDP_CHECK(cudaMalloc(&data, 16));
    const int line = __LINE__ + 1;
    DDP_CHECK(cudaFree(data));
    require_parts(
        message_of([&] { DDP_CHECK(cudaMemcpy(&host, data, 4, cudaMemcpyDeviceToHost)); }),
        {"the source is byte 0 of the 16 bytes", "which was freed at " + here(line)});
}

// ---- Freeing

TEST_CASE("memory freed wrongly") {
    char* device = nullptr;
    char* pinned = nullptr;
    int on_stack = 0;
    DDP_CHECK(cudaMalloc(&device, 100));
    DDP_CHECK(cudaMallocHost(&pinned, 200));
    require_parts(message_of([&] { DDP_CHECK(cudaFree(pinned)); }),
                  {"cannot free the 200 bytes that cudaMallocHost", "use cudaFreeHost"});
    require_parts(message_of([&] { DDP_CHECK(cudaFreeHost(device)); }),
                  {"cannot free the 100 bytes that cudaMalloc", "use cudaFree"});
    require_parts(message_of([&] { DDP_CHECK(cudaIpcCloseMemHandle(device)); }),
                  {"cannot free the 100 bytes", "use cudaFree"});
    require_parts(message_of([&] { DDP_CHECK(cudaFree(device + 8)); }),
                  {"an address inside the 100 bytes", "free it by its first byte"});
    require_parts(message_of([&] { DDP_CHECK(cudaFree(&on_stack)); }),
                  {"an address that no allocation of CUDA's holds"});
    const int line = __LINE__ + 1;
    DDP_CHECK(cudaFree(device));
    require_parts(message_of([&] { DDP_CHECK(cudaFree(device)); }),
                  {"cudaFree at " + here(line + 1), "frees a second time the 100 bytes",
                   "freed before at " + here(line)});
    DDP_CHECK(cudaFreeHost(pinned));
    require_parts(message_of([&] { DDP_CHECK(cudaFreeHost(pinned)); }), {"frees a second time"});
    REQUIRE(cudaFree(nullptr) == cudaSuccess);
}

constexpr int leak = __LINE__ + 3;
TEST_CASE("child leaks", "[.child]") {
    void* data = nullptr;
    DDP_CHECK(cudaMalloc(&data, 123));
}

TEST_CASE("memory that is never freed") {
    const std::string said =
        "never freed: the 123 bytes that cudaMalloc at " + here(leak) + " gave";
    const ChildResult strict = run_child("child leaks");
    require_parts(strict.output, {said});
    REQUIRE(strict.exit_code == 1);
    const ChildResult plain = run_child("child leaks", {"CUDA_ON_CPU="});
    require_parts(plain.output, {said});
    REQUIRE(plain.exit_code == 0);
}

// ---- Errors that are never read

__global__ void first_leaves() {
    if (threadIdx.x == 0)
        return;
    __syncthreads();
}

TEST_CASE("child ignores an error", "[.child]") {
    Buffer<int> data(4);
    cudaMemset(data.data(), 0, 17);
}

TEST_CASE("child ignores a failed kernel", "[.child]") {
    Stream stream;
    launch(stream, {1, 64}, first_leaves);
}

TEST_CASE("errors that are never read") {
    const ChildResult call = run_child("child ignores an error");
    require_parts(call.output, {"the range has only 16 left", "this error was never read"});
    REQUIRE(call.exit_code == 0);
    for (const char* settings : {"CUDA_ON_CPU=strict", "CUDA_ON_CPU="}) {
        const ChildResult kernel = run_child("child ignores a failed kernel", {settings});
        require_parts(kernel.output, {"first_leaves()", "this error was never read"});
        REQUIRE(kernel.exit_code == 1);
    }
}

// ---- Too early

TEST_CASE("child reads too early", "[.child]") {
    Stream stream;
    Buffer<int> device(std::vector<int>{1, 2, 3});
    PinnedBuffer<int> host(3);
    DDP_CHECK(cudaMemcpyAsync(host.data(), device.data(), 12, cudaMemcpyDeviceToHost, stream));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the copy is long done
    std::cout << host[2] << std::endl;
}

TEST_CASE("child writes too early", "[.child]") {
    Stream stream;
    Buffer<int> device(3);
    PinnedBuffer<int> host(3);
    host[1] = 5;
    DDP_CHECK(cudaMemcpyAsync(device.data(), host.data(), 12, cudaMemcpyHostToDevice, stream));
    const int allowed = host[1];  // reading does not disturb the copy
    host[1] = allowed + 1;
}

TEST_CASE("pinned memory used before its stream is synchronised") {
    const ChildResult reads = run_child("child reads too early");
    require_parts(reads.output, {"the host read byte 8 of a buffer that cudaMemcpyAsync at " +
                                     here(0).substr(0, 37),
                                 "writes, before it synchronised with the stream"});
    REQUIRE(reads.signal == SIGSEGV);
    const ChildResult writes = run_child("child writes too early");
    require_parts(writes.output, {"the host wrote byte 4 of a buffer that cudaMemcpyAsync at",
                                  "reads, before it synchronised with the stream"});
    REQUIRE(writes.signal == SIGSEGV);
}

__global__ void double_all(int* data, std::size_t n) {
    for (std::size_t i : grid_range(n))
        data[i] *= 2;
}

TEST_CASE("no false alarm once the host has synchronised") {
    Stream stream, second;
    Buffer<int> device(std::vector<int>{3, 4, 5});
    PinnedBuffer<int> host(3);
    Event copied, later;
    const auto copy = [&] {
        DDP_CHECK(cudaMemcpyAsync(host.data(), device.data(), 12, cudaMemcpyDeviceToHost, stream));
        copied.record(stream);
    };
    copy();
    SECTION("by the stream") {
        stream.synchronize();
    }
    SECTION("by an event") {
        copied.synchronize();
    }
    SECTION("by the device") {
        DDP_CHECK(cudaDeviceSynchronize());
    }
    SECTION("by asking the stream until it is done") {
        while (forget_not_ready(cudaStreamQuery(stream)) == cudaErrorNotReady)
            std::this_thread::yield();
    }
    SECTION("by asking the event until it is done") {
        while (forget_not_ready(cudaEventQuery(copied)) == cudaErrorNotReady)
            std::this_thread::yield();
    }
    SECTION("by a second stream that waited") {
        second.wait(copied);
        later.record(second);
        later.synchronize();
    }
    SECTION("in a host function behind the copy") {
        struct Seen {
            PinnedBuffer<int>* host;
            int value = 0;
        } seen{&host};
        DDP_CHECK(cudaLaunchHostFunc(
            stream,
            [](void* pointer) {
                auto* seen = static_cast<Seen*>(pointer);
                seen->value = (*seen->host)[1];
            },
            &seen));
        stream.synchronize();
        REQUIRE(seen.value == 4);
    }
    REQUIRE(host[2] == 5);
    host[2] = 6;
}

TEST_CASE("no false alarm beside a copy in flight") {
    Stream stream;
    Buffer<int> device(std::vector<int>{3, 4, 5});
    PinnedBuffer<int> slots(6);
    slots[4] = 1;
    DDP_CHECK(cudaMemcpyAsync(slots.data(), device.data(), 12, cudaMemcpyDeviceToHost, stream));
    slots[4] = slots[4] + 1;                              // a neighbour on the same page
    launch(stream, {1, 1}, double_all, slots.data(), 3);  // in order: the stream's next command
    stream.synchronize();
    REQUIRE(slots[0] == 6);
    REQUIRE(slots[2] == 10);
    REQUIRE(slots[4] == 2);
}

TEST_CASE("no false alarm where threads copy from one page") {
    PinnedBuffer<int> slots(4);
    Buffer<int> device(slots.size());
    std::vector<std::thread> threads;
    for (std::size_t slot = 0; slot < slots.size(); slot++)
        threads.emplace_back([&, slot] {
            Stream stream;
            for (int i = 0; i < 3000; i++) {
                slots[slot] = i;  // may be a fault, and another thread opens the page meanwhile
                DDP_CHECK(cudaMemcpyAsync(device.data() + slot, &slots[slot], sizeof(int),
                                          cudaMemcpyHostToDevice, stream));
                stream.synchronize();
            }
        });
    for (std::thread& thread : threads)
        thread.join();
    REQUIRE(device.to_host_now() == std::vector<int>(slots.size(), 2999));
}

// ---- Waiting

__global__ void wait_for_flag(int* flag) {
    cuda::atomic_ref<int, cuda::thread_scope_system> arrived(*flag);
    while (arrived.load(cuda::memory_order_acquire) == 0)
        __nanosleep(1000);
}

void raise(PinnedBuffer<int>& flag) {
    cuda::atomic_ref<int, cuda::thread_scope_system>(flag[0]).store(1, cuda::memory_order_release);
}

TEST_CASE("allocating or freeing while a cooperative kernel waits") {
    Stream stream;
    PinnedBuffer<int> flag(1);
    Buffer<int> other(10);
    flag[0] = 0;
    const int launched = __LINE__ + 1;
    launch_cooperative(stream, {2, 32}, wait_for_flag, flag.data());
    void* pointer = nullptr;
    const std::string kernel =
        "kernel ddp::test::wait_for_flag(int*), launched at " + here(launched);
    const int line = __LINE__ + 1;
    const std::string allocates = message_of([&] { DDP_CHECK(cudaMalloc(&pointer, 64)); });
    require_parts(allocates, {"cudaErrorNotPermitted", "cudaMalloc at " + here(line),
                              "(64 bytes) while the cooperative " + kernel + " is in flight",
                              "allocate before, free after"});
    require_parts(message_of([&] { DDP_CHECK(cudaMallocHost(&pointer, 65)); }),
                  {"cudaMallocHost", "(65 bytes) while the cooperative " + kernel});
    require_parts(message_of([&] { DDP_CHECK(cudaFree(other.data())); }),
                  {"cudaFree", "byte 0 of the 40 bytes", "while the cooperative " + kernel});
    raise(flag);
    stream.synchronize();
}

__global__ void sleep_for_ever(int* flag) {
    wait_for_flag(flag);
}
__global__ void loop_for_ever(volatile int* flag) {
    while (*flag == 0) {
    }
}

TEST_CASE("a kernel that never ends is ended and named") {
    const With limit([](cuda_on_cpu::Settings& to) { to.kernel_timeout_s = 1; });
    struct Case {
        unsigned int grid, block;
        bool cooperative, sleeps;
    };
    std::vector<Case> cases = {{1, 1, false, true}, {1, 64, false, true}, {4, 32, true, true}};
    if (thread_sanitizer)
        std::cout << "SKIPPED: kernels that spin for ever without __nanosleep (ThreadSanitizer "
                     "holds signals back until a thread makes a system call)\n";
    else
        cases.insert(cases.end(),
                     {{1, 1, false, false}, {1, 64, false, false}, {4, 32, true, false}});
    for (const Case& c : cases) {
        CAPTURE(c.grid, c.block, c.cooperative, c.sleeps);
        const auto start = std::chrono::steady_clock::now();
        const int line = __LINE__ + 6;
        const std::string message = failure_of([&] {
            Stream stream;
            Buffer<int> flag(std::vector<int>{0});
            auto* kernel =
                c.sleeps ? sleep_for_ever : reinterpret_cast<void (*)(int*)>(loop_for_ever);
            const LaunchShape shape(c.grid, c.block);
            if (c.cooperative)
                launch_cooperative(stream, shape, kernel, flag.data());
            else
                launch(stream, shape, kernel, flag.data());
            stream.synchronize();
        });
        require_parts(message,
                      {"cudaErrorLaunchTimeout", c.sleeps ? "sleep_for_ever" : "loop_for_ever",
                       "launched at " + here(line), "still running after 1 s",
                       "Does one of its loops never end?", "must call __nanosleep"});
        REQUIRE(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
    }
}

// ---- Kernels that are observed

__global__ void meet_twice(int* shared_by_all) {
    __syncthreads();
    if (threadIdx.x == 0)
        shared_by_all[blockIdx.x] = 1;
    __syncthreads();
}
__global__ void never_meet(int* values) {
    values[threadIdx.x] = 1;
}

std::vector<cuda_on_cpu::FinishedKernel>& observed() {
    static std::vector<cuda_on_cpu::FinishedKernel> kernels;
    return kernels;
}

TEST_CASE("an observer is told of each kernel's shape and meetings") {
    Stream stream;
    Buffer<int> values(64);
    observed().clear();
    cuda_on_cpu::observe_kernels(
        [](const cuda_on_cpu::FinishedKernel& kernel) { observed().push_back(kernel); });
    launch(stream, {3, 64}, meet_twice, values.data());
    launch(stream, {1, 64}, never_meet, values.data());
    stream.synchronize();
    cuda_on_cpu::observe_kernels(nullptr);
    launch(stream, {1, 64}, never_meet, values.data());
    stream.synchronize();
    REQUIRE(observed().size() == 2);
    REQUIRE(observed()[0].shape.grid.x == 3);
    REQUIRE(observed()[0].shape.block.x == 64);
    REQUIRE(observed()[0].meetings == 6);
    REQUIRE(observed()[1].meetings == 0);
}

// ---- Launches that no GPU takes

__global__ void nothing() {}

TEST_CASE("products of matrices that are refused") {
    Buffer<__half> a(6), b(6);
    Buffer<float> c(4);
    cublasHandle_t blas = nullptr;
    DDP_CHECK(cublasCreate(&blas));
    const float one = 1, zero = 0;
    const auto sentence = [&](const void* b_data, cudaDataType type_b, cudaDataType type_c,
                              int columns) {
        return message_of([&] {
            DDP_CHECK(cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 2, columns, 3, &one, a.data(),
                                   CUDA_R_16F, 2, b_data, type_b, 3, &zero, c.data(), type_c, 2,
                                   CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
        });
    };
    REQUIRE(sentence(b.data(), CUDA_R_16F, CUDA_R_32F, 2) == "(nothing was said)");
    for (const auto& [type_b, type_c] :
         {std::pair{CUDA_R_16BF, CUDA_R_32F}, std::pair{CUDA_R_32F, CUDA_R_32F},
          std::pair{CUDA_R_16F, CUDA_R_16F}})
        require_parts(sentence(b.data(), type_b, type_c, 2),
                      {"cublasGemmEx at ", "takes here A and B of CUDA_R_16F"});
    require_parts(sentence(b.data(), CUDA_R_16F, CUDA_R_32F, 3),
                  {"matrix B (3 x 3) needs 18 bytes, and only 12 are left"});
    require_parts(sentence(&one, CUDA_R_16F, CUDA_R_32F, 2),
                  {"matrix B (3 x 2) is not in device memory"});
    DDP_CHECK(cublasDestroy(blas));
}

TEST_CASE("launches that are refused") {
    Stream stream;
    const auto sentence = [&](const LaunchShape& shape) {
        return message_of([&] { launch(stream, shape, nothing); });
    };
    require_parts(sentence({1, 1025}), {"cudaErrorInvalidConfiguration", "nothing(), launched at ",
                                        "a block of (1025,1,1) threads is too large", "1024"});
    require_parts(sentence({1, dim3(1, 1, 65)}), {"(1,1,65)", "64 of them in z"});
    require_parts(sentence({0, 32}), {"a grid of (0,1,1) blocks", "is empty"});
    require_parts(sentence({dim3(1, 65536), 32}), {"(1,65536,1)", "too large"});
    require_parts(sentence({1, 32, (48 << 10) + 1}), {"49153 bytes of dynamic shared memory",
                                                      "may have 49152", "cudaFuncSetAttribute"});
    DDP_CHECK(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 100'000));
    launch(stream, {1, 32, 100'000}, nothing);
    require_parts(message_of([] {
                      DDP_CHECK(cudaFuncSetAttribute(
                          nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 240'000));
                  }),
                  {"240000 bytes of dynamic shared memory", "232448"});
    int processors = 0;
    DDP_CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    const unsigned int most = 8 * static_cast<unsigned int>(processors);
    launch_cooperative(stream, {most, 32}, nothing);
    require_parts(
        message_of([&] {
            launch_cooperative(stream, {most + 1, 32}, nothing);
        }),
        {"cudaErrorCooperativeLaunchTooLarge", std::to_string(most + 1) + " blocks cannot all run",
         std::to_string(most) + " can"});
    stream.synchronize();  // none of this loses the device
}

__global__ void add_all(float* to, float a, int b, double c, bool d, const int* e, long f, float g,
                        unsigned int h, int i, long long j, int k) {
    to[threadIdx.x] += a + static_cast<float>(b + c + d + *e + f + g + h + i + j + k);
}
__global__ void take_shape(dim3) {}

TEST_CASE("a launch of a kernel's address") {
    Buffer<float> sum(std::vector<float>{0.5f, 7});
    Buffer<int> numbers(std::vector<int>{10});
    float *to = sum.data(), a = 1, g = 64;
    int b = -2, i = 256, k = -1024;
    double c = 4;
    bool d = true;
    const int* e = numbers.data();
    long f = -32;
    unsigned int h = 128;
    long long j = 512;
    void* arguments[] = {&to, &a, &b, &c, &d, &e, &f, &g, &h, &i, &j, &k};
    const auto* const address = reinterpret_cast<const void*>(add_all);
    DDP_CHECK(cudaFuncSetAttribute(address, cudaFuncAttributeMaxDynamicSharedMemorySize, 64));
    DDP_CHECK(cudaLaunchKernel(address, 1, 2, arguments));
    DDP_CHECK(cudaLaunchCooperativeKernel(address, 1, 1, arguments));
    REQUIRE(sum.to_host_now() == std::vector<float>{0.5f - 2 * 82, 7 - 82});
    dim3 shape;
    void* shapes[] = {&shape};
    require_parts(
        message_of([&] {
            DDP_CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(take_shape), 1, 1, shapes));
        }),
        {"take_shape(dim3), launched at", "its parameter of type dim3 cannot be passed",
         "launch the kernel itself, without a cast"});
    require_parts(message_of([&] {
                      DDP_CHECK(cudaLaunchKernel(static_cast<const void*>(&shape), 1, 1, shapes));
                  }),
                  {"was given an address that is none of a kernel of this program"});
}

constexpr int trap = __LINE__ + 3;
__global__ void trap_in_block_one() {
    if (blockIdx.x == 1 && threadIdx.x == 2)
        __trap();
}
__global__ void throw_in_kernel() {
    throw std::runtime_error("a reason");
}
__global__ void throw_number() {
    throw 7;
}

TEST_CASE("a kernel that gives up") {
    require_parts(failure_of_kernel({2, 3}, trap_in_block_one),
                  {"thread (2,0,0) of block (1,0,0) called __trap() at " + here(trap)});
    for (unsigned int block : {1u, 3u}) {
        require_parts(failure_of_kernel({1, block}, throw_in_kernel),
                      {"throw_in_kernel()", "threw an exception, which no GPU can: a reason"});
        require_parts(failure_of_kernel({1, block}, throw_number),
                      {"throw_number()", "threw an exception, which no GPU can"});
    }
}

__global__ void one_block_traps(int* flag) {
    if (blockIdx.x == 2 && threadIdx.x == 1)
        __trap();
    __syncthreads();
    wait_for_flag(flag);  // for ever
}

TEST_CASE("a block that gives up releases the others and later work") {
    const auto start = std::chrono::steady_clock::now();
    const std::string message = failure_of([] {
        Stream stream, behind;
        Event event;
        Buffer<int> flag(std::vector<int>{0});
        launch_cooperative(stream, {4, 32}, one_block_traps, flag.data());
        event.record(stream);
        behind.wait(event);
        behind.synchronize();
    });
    require_parts(message,
                  {"one_block_traps(int*)", "thread (1,0,0) of block (2,0,0) called __trap()"});
    REQUIRE(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

// ---- Calls at the wrong time

TEST_CASE("CUDA called from a host function") {
    Stream stream;
    std::string message;
    DDP_CHECK(cudaLaunchHostFunc(
        stream,
        [](void* to) {
            void* memory = nullptr;
            *static_cast<std::string*>(to) =
                message_of([&] { DDP_CHECK(cudaMalloc(&memory, 4)); }) +
                message_of([&] { DDP_CHECK(cudaStreamDestroy(nullptr)); });
        },
        &message));
    stream.synchronize();
    require_parts(message,
                  {"cudaMalloc was called from a host function (cudaLaunchHostFunc), where "
                   "CUDA allows no call",
                   "cudaStreamDestroy was called from a host function"});
}

TEST_CASE("host functions of all streams run one at a time") {
    struct Turn {
        std::atomic<int> inside{0}, most{0}, done{0};
    } turn;
    std::vector<Stream> streams(4);
    for (int i = 0; i < 40; i++)
        DDP_CHECK(cudaLaunchHostFunc(
            streams[static_cast<std::size_t>(i % 4)],
            [](void* data) {
                auto* turn = static_cast<Turn*>(data);
                turn->most = std::max(turn->most.load(), ++turn->inside);
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                turn->inside--;
                turn->done++;
            },
            &turn));
    DDP_CHECK(cudaDeviceSynchronize());
    REQUIRE(turn.done == 40);
    REQUIRE(turn.most == 1);
}

TEST_CASE("streams and events that are no more") {
    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
    DDP_CHECK(cudaStreamCreate(&stream));
    DDP_CHECK(cudaEventCreate(&event));
    float milliseconds = 0;
    require_parts(message_of([&] { DDP_CHECK(cudaEventElapsedTime(&milliseconds, event, event)); }),
                  {"two events that were recorded"});
    DDP_CHECK(cudaStreamDestroy(stream));
    DDP_CHECK(cudaEventDestroy(event));
    const std::string no_stream = "a stream that was destroyed or never created";
    const std::string no_event = "an event that was destroyed or never created";
    require_parts(message_of([&] { DDP_CHECK(cudaStreamSynchronize(stream)); }), {no_stream});
    require_parts(message_of([&] { launch(stream, {1, 1}, nothing); }), {no_stream});
    require_parts(message_of([&] { DDP_CHECK(cudaStreamDestroy(stream)); }), {no_stream});
    require_parts(message_of([&] { DDP_CHECK(cudaEventRecord(event, nullptr)); }), {no_event});
    require_parts(message_of([&] { DDP_CHECK(cudaEventSynchronize(event)); }), {no_event});
    require_parts(message_of([&] { DDP_CHECK(cudaEventDestroy(event)); }), {no_event});
}

// Ends by a signal that it sends to itself, on the host or in the middle of a kernel.
__global__ void send_to_itself(int signal) {
    ::raise(signal);
}
TEST_CASE("child is sent SIGSEGV", "[.child]") {
    Buffer<int> data(1);
    ::raise(SIGSEGV);
}
TEST_CASE("child is sent SIGBUS in a kernel", "[.child]") {
    launch(Stream(), {1, 1}, send_to_itself, SIGBUS);
    DDP_CHECK(cudaDeviceSynchronize());
}

TEST_CASE("a signal that another process sends is not taken for a fault of a kernel") {
    // By the signal, or, with a sanitizer, by its report.
    REQUIRE(run_child("child is sent SIGSEGV").exit_code != 0);
    REQUIRE(run_child("child is sent SIGBUS in a kernel").exit_code != 0);
}

// ---- Settings

TEST_CASE("child uses the device", "[.child]") {
    Buffer<int> data(1);
}

TEST_CASE("settings that are none") {
    const auto sentence = [](const std::string& text) {
        const ChildResult child = run_child("child uses the device", {"CUDA_ON_CPU=" + text});
        REQUIRE(child.exit_code == 2);
        return child.output;
    };
    require_parts(sentence("nonsense"),
                  {"error: CUDA_ON_CPU: 'nonsense' is not a setting", "strict"});
#if !defined(DDP_SEES_RACES)
    require_parts(sentence("strict,races"),
                  {"error: CUDA_ON_CPU: this program was not built to look for `races`",
                   "CUDA_ON_CPU=races ./book run NN"});
#endif
    require_parts(sentence("strict,order=sideways"), {"'order=sideways'"});
    require_parts(sentence("order=random:x"), {"'order=random:x' needs a number"});
    require_parts(sentence("timeout=-1"), {"'timeout=-1' needs a number from 0"});
    for (const std::string shape : {"", "3", "3x", "x5", "0x5", "3x5x2", "65x1", "1x1025"})
        require_parts(sentence("shape=" + shape), {"'shape=" + shape + "' needs a number from 1"});
    require_parts(sentence("devices=0"), {"'devices=0' needs a number from 1 to 64"});
    require_parts(sentence("memory=0.5"), {"'memory=0.5' needs a number from 1 to 1000000000"});
    const cuda_on_cpu::Settings parsed = cuda_on_cpu::parse_settings(
        "strict,order=random:12,shape=3x5,timeout=2.5,devices=3,memory=1.5,late=20,slow_host=4,"
        "hiccup=200");
    REQUIRE(parsed.strict);
    REQUIRE(parsed.order == cuda_on_cpu::Order::random);
    REQUIRE(parsed.seed == 12);
    REQUIRE(parsed.shape.blocks == 3);
    REQUIRE(parsed.shape.threads == 5);
    REQUIRE(parsed.kernel_timeout_s == 2.5);
    REQUIRE(parsed.devices == 3);
    REQUIRE(parsed.memory_mib == 1.5);
    REQUIRE(parsed.late_ms == 20);
    REQUIRE(parsed.slow_host_us == 4);
    REQUIRE(parsed.hiccup_ms == 200);
}

}  // namespace
}  // namespace ddp::test
