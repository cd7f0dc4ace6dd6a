// Stream capture and graphs: what is noted, what a launch runs, and in which order. The same source
// for a CPU and for a GPU.
#include <cublas_v2.h>

#include <cstdint>
#include <thread>
#include <vector>

#include <cuda/atomic>

#include "common/gpu/captured_graph.hpp"
#include "common/gpu/gpu.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using SystemFlag = cuda::atomic_ref<int, cuda::thread_scope_system>;

// Not commutative: any other order gives another value.
__global__ void append_digit(std::uint64_t* value, int digit) {
    *value = *value * 31 + static_cast<std::uint64_t>(digit);
}

__global__ void append_from_memory(std::uint64_t* value, const int* digit) {
    *value = *value * 31 + static_cast<std::uint64_t>(*digit);
}

// Raises one flag and waits for another, for some seconds at most. *met becomes 1 if it came.
__global__ void meet(int* own, int* other, int* met) {
    SystemFlag(*own).store(1, cuda::memory_order_release);
    for (int round = 0; round < 1'000'000 && *met == 0; round++) {
        *met = SystemFlag(*other).load(cuda::memory_order_acquire);
        __nanosleep(2000);
    }
}

std::uint64_t digits(const std::vector<int>& all) {
    std::uint64_t value = 0;
    for (int digit : all)
        value = value * 31 + static_cast<std::uint64_t>(digit);
    return value;
}

Buffer<std::uint64_t> zeros(std::size_t count) {
    return Buffer<std::uint64_t>(std::vector<std::uint64_t>(count, 0));
}

TEST_CASE("a captured stream runs nothing, and each launch of its graph runs all of it in order") {
    Stream stream;
    Buffer<std::uint64_t> value = zeros(1);
    CapturedGraph graph(stream, [&] {
        for (int digit = 1; digit <= 3; digit++)
            launch(stream, {1, 1}, append_digit, value.data(), digit);
    });
    stream.synchronize();
    REQUIRE(value.to_host_now()[0] == 0);
    REQUIRE(graph.nodes() == 3);
    graph.launch(stream);
    graph.launch(stream);
    launch(stream, {1, 1}, append_digit, value.data(), 7);
    graph.launch(stream);
    stream.synchronize();
    REQUIRE(value.to_host_now()[0] == digits({1, 2, 3, 1, 2, 3, 7, 1, 2, 3}));
}

TEST_CASE("arguments are those of the capture, and memory is that of the launch") {
    Stream stream;
    Buffer<std::uint64_t> value = zeros(1);
    Buffer<int> in_memory(std::vector<int>{5});
    int digit = 1;
    CapturedGraph graph(stream, [&] {
        launch(stream, {1, 1}, append_digit, value.data(), digit);
        launch(stream, {1, 1}, append_from_memory, value.data(), in_memory.data());
    });
    digit = 2;
    in_memory.copy_from(std::vector<int>{6});
    graph.launch(stream);
    stream.synchronize();
    REQUIRE(value.to_host_now()[0] == digits({1, 6}));
}

TEST_CASE(
    "an instantiated graph outlives the graph, the capturing stream and the launch's handle") {
    Buffer<std::uint64_t> value = zeros(1);
    Stream other;
    {
        Stream stream;
        CapturedGraph graph(stream, [&] { launch(stream, {1, 1}, append_digit, value.data(), 4); });
        graph.launch(other);
    }
    other.synchronize();
    REQUIRE(value.to_host_now()[0] == 4);
}

TEST_CASE("copies, fills, products and host functions are noted, too") {
    Stream stream;
    PinnedBuffer<int> from(3), to(3);
    Buffer<int> on_device(std::vector<int>{-1, -1, -1});
    Buffer<float> factor(std::vector<float>{3}), product(std::vector<float>{0});
    cublasHandle_t handle = nullptr;
    DDP_CHECK(cublasCreate(&handle));
    DDP_CHECK(cublasSetStream(handle, stream));
    const float one = 1, two = 2;
    int calls = 0;
    CapturedGraph graph(stream, [&] {
        DDP_CHECK(cudaMemcpyAsync(on_device.data(), from.data(), 3 * sizeof(int),
                                  cudaMemcpyHostToDevice, stream));
        DDP_CHECK(cudaMemsetAsync(on_device.data() + 2, 0, sizeof(int), stream));
        DDP_CHECK(cudaMemcpyAsync(to.data(), on_device.data(), 3 * sizeof(int),
                                  cudaMemcpyDeviceToHost, stream));
        DDP_CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &two, factor.data(), 1,
                              factor.data(), 1, &one, product.data(), 1));
        DDP_CHECK(cudaLaunchHostFunc(
            stream, [](void* count) { ++*static_cast<int*>(count); }, &calls));
    });
    REQUIRE(calls == 0);
    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < 3; i++)
            from[static_cast<std::size_t>(i)] = 10 * round + i;
        graph.launch(stream);
        stream.synchronize();
        REQUIRE(calls == round);
        REQUIRE(std::vector<int>{to[0], to[1], to[2]} ==
                std::vector<int>{10 * round, 10 * round + 1, 0});
        REQUIRE(product.to_host_now()[0] == 18.0f * static_cast<float>(round));
    }
    DDP_CHECK(cublasDestroy(handle));
}

// The diamond: A, then B on one stream beside C on the other, then D.
TEST_CASE("a stream that waits for a captured one's event joins, and the order of both is kept") {
    Stream first, second;
    Event forked, joined;
    Buffer<std::uint64_t> values = zeros(2);
    std::uint64_t *own = values.data(), *other = values.data() + 1;
    CapturedGraph graph(first, [&] {
        launch(first, {1, 1}, append_digit, other, 1);
        forked.record(first);
        second.wait(forked);
        REQUIRE(capture_status(second) == cudaStreamCaptureStatusActive);
        launch(second, {1, 1}, append_digit, other, 2);
        launch(first, {1, 1}, append_digit, own, 3);
        joined.record(second);
        launch(first, {1, 1}, append_digit, own, 4);
        first.wait(joined);
        launch(first, {1, 1}, append_digit, other, 5);
    });
    REQUIRE(capture_status(second) == cudaStreamCaptureStatusNone);
    REQUIRE(graph.nodes() == 5);
    for (int round = 0; round < 50; round++)
        graph.launch(round % 2 == 0 ? first : second);
    first.synchronize();
    second.synchronize();
    std::vector<int> own_digits, other_digits;
    for (int round = 0; round < 50; round++) {
        own_digits.insert(own_digits.end(), {3, 4});
        other_digits.insert(other_digits.end(), {1, 2, 5});
    }
    REQUIRE(values.to_host_now() ==
            std::vector<std::uint64_t>{digits(own_digits), digits(other_digits)});
}

TEST_CASE("branches of a graph run at the same time") {
    Stream first, second;
    Event forked, joined;
    Buffer<int> flags(std::vector<int>{0, 0}), met(std::vector<int>{0, 0});
    CapturedGraph graph(first, [&] {
        forked.record(first);
        second.wait(forked);
        launch(second, {1, 1}, meet, flags.data(), flags.data() + 1, met.data());
        joined.record(second);
        launch(first, {1, 1}, meet, flags.data() + 1, flags.data(), met.data() + 1);
        first.wait(joined);
    });
    graph.launch(first);
    first.synchronize();
    REQUIRE(met.to_host_now() == std::vector<int>{1, 1});
}

TEST_CASE(
    "a wait inside of a graph is for what stood before the event, and not for what came then") {
    Stream first, second;
    Event forked, early, joined;
    Buffer<int> flags(std::vector<int>{0, 0}), met(std::vector<int>{0, 0});
    CapturedGraph graph(first, [&] {
        forked.record(first);
        second.wait(forked);
        early.record(second);
        // Ends only beside the kernel of the first stream, which waits for what is before it.
        launch(second, {1, 1}, meet, flags.data(), flags.data() + 1, met.data());
        first.wait(early);
        launch(first, {1, 1}, meet, flags.data() + 1, flags.data(), met.data() + 1);
        joined.record(second);
        first.wait(joined);
    });
    graph.launch(first);
    first.synchronize();
    REQUIRE(met.to_host_now() == std::vector<int>{1, 1});
}

TEST_CASE("the launching stream waits for all branches, and they for what it did before") {
    Stream first, second;
    Event forked, joined;
    Buffer<std::uint64_t> value = zeros(1);
    CapturedGraph graph(first, [&] {
        forked.record(first);
        second.wait(forked);
        for (int digit = 1; digit <= 20; digit++)
            launch(second, {1, 1}, append_digit, value.data(), digit);
        joined.record(second);
        first.wait(joined);
    });
    std::vector<int> expected;
    Stream third;
    for (int round = 0; round < 20; round++) {
        launch(third, {1, 1}, append_digit, value.data(), 30);
        graph.launch(third);
        launch(third, {1, 1}, append_digit, value.data(), 29);
        expected.push_back(30);
        for (int digit = 1; digit <= 20; digit++)
            expected.push_back(digit);
        expected.push_back(29);
    }
    third.synchronize();
    REQUIRE(value.to_host_now()[0] == digits(expected));
}

TEST_CASE("launches of one instance on two streams do not overlap") {
    Stream first, second;
    Buffer<std::uint64_t> value = zeros(1);
    CapturedGraph graph(first, [&] {
        for (int digit = 1; digit <= 9; digit++)
            launch(first, {1, 1}, append_digit, value.data(), digit);
    });
    std::vector<int> expected;
    for (int round = 0; round < 100; round++) {
        graph.launch(round % 3 == 0 ? second : first);
        for (int digit = 1; digit <= 9; digit++)
            expected.push_back(digit);
    }
    first.synchronize();
    second.synchronize();
    REQUIRE(value.to_host_now()[0] == digits(expected));
}

TEST_CASE("threads that capture in their own mode disturb nobody") {
    std::vector<std::uint64_t> results(6);
    std::vector<Stream> streams(results.size());
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < results.size(); rank++)
        threads.emplace_back([&results, &stream = streams[rank], rank] {
            Buffer<std::uint64_t> value = zeros(1);
            for (int round = 0; round < 10; round++) {
                CapturedGraph graph(stream, [&] {
                    launch(stream, {1, 1}, append_digit, value.data(), static_cast<int>(rank));
                });
                Buffer<int> allocated_meanwhile(4);
                graph.launch(stream);
            }
            stream.synchronize();
            results[rank] = value.to_host_now()[0];
        });
    for (std::thread& thread : threads)
        thread.join();
    for (std::size_t rank = 0; rank < results.size(); rank++)
        REQUIRE(results[rank] == digits(std::vector<int>(10, static_cast<int>(rank))));
}

}  // namespace
}  // namespace ddp::test
