// What a captured stream refuses, and what is said.
#include <string>
#include <thread>
#include <utility>

#include <cublas_v2.h>

#include <cuda/atomic>

#include "common/gpu/captured_graph.hpp"
#include "common/gpu/gpu.hpp"
#include "tests/common/runtime/diagnoses.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"

namespace ddp::test {
namespace {

// A stream that is captured, and a kernel that was noted.
struct OpenCapture {
    explicit OpenCapture(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
        DDP_CHECK(cudaStreamBeginCapture(stream, mode));
        launch(stream, {1, 1}, count_up, value.data());
    }
    // Sees that the capture has failed, that every later call and its end say why, and that the
    // stream is as good as before.
    void check_failed(const std::string& words) {
        CHECK(capture_status(stream) == cudaStreamCaptureStatusInvalidated);
        require_parts(message_of([&] {
                          launch(stream, {1, 1}, count_up, value.data());
                      }),
                      {"has failed before", "only cudaStreamEndCapture ends it", words});
        const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
        CHECK(ended == cudaErrorStreamCaptureInvalidated);
        require_parts(cudaGetErrorString(ended), {"there is no graph", words});
        CHECK(graph == nullptr);
        cudaGetLastError();
        launch(stream, {1, 1}, count_up, value.data());
        stream.synchronize();
        CHECK(value.to_host_now()[0] == 1);
    }

    Buffer<int> value{std::vector<int>{0}};
    Stream stream;
    cudaGraph_t graph = nullptr;
};

template <class Wrong>
void check_refusal(cudaError_t code, const std::string& words, Wrong wrong,
                   cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
    INFO(words);
    OpenCapture open(mode);
    const cudaError_t refused = wrong(static_cast<cudaStream_t>(open.stream));
    require_parts(cudaGetErrorString(refused), {words});
    CHECK(refused == code);
    open.check_failed(words);
}

TEST_CASE("calls that wait for a captured stream") {
    const auto code = cudaErrorStreamCaptureUnsupported;
    check_refusal(code, "cudaStreamSynchronize: this stream is captured", cudaStreamSynchronize);
    check_refusal(code, "cudaStreamQuery: this stream is captured", cudaStreamQuery);
    check_refusal(code, "cudaDeviceSynchronize waits for all streams",
                  [](cudaStream_t) { return cudaDeviceSynchronize(); });
    Event event;
    const auto recorded = [&](auto call) {
        return [&event, call](cudaStream_t stream) {
            DDP_CHECK(cudaEventRecord(event, stream));
            return call(event);
        };
    };
    const std::string said = ": the event was last recorded in a captured stream";
    check_refusal(cudaErrorCapturedEvent, "cudaEventSynchronize" + said,
                  recorded([](cudaEvent_t asked) { return cudaEventSynchronize(asked); }));
    check_refusal(cudaErrorCapturedEvent, "cudaEventQuery" + said,
                  recorded([](cudaEvent_t asked) { return cudaEventQuery(asked); }));
    check_refusal(cudaErrorCapturedEvent, "cudaEventElapsedTime" + said,
                  recorded([](cudaEvent_t asked) {
                      float milliseconds = 0;
                      return cudaEventElapsedTime(&milliseconds, asked, asked);
                  }));
    Stream stream;
    event.record(stream);
    DDP_CHECK(cudaEventSynchronize(event));
}

TEST_CASE("calls that may wait for a stream") {
    const auto code = cudaErrorStreamCaptureUnsupported;
    void* memory = nullptr;
    Buffer<int> buffer(1);
    Event event;
    cublasHandle_t handle = nullptr;
    const std::string said = "while this thread captures one it is not allowed";
    const auto allocate = [&](cudaStream_t) { return cudaMalloc(&memory, 4); };
    check_refusal(code, said, allocate);
    check_refusal(code, said, allocate, cudaStreamCaptureModeThreadLocal);
    check_refusal(code, "cudaFree", [&](cudaStream_t) { return cudaFree(buffer.data()); });
    check_refusal(code, "cudaHostAlloc",
                  [&](cudaStream_t) { return cudaHostAlloc(&memory, 4, 0); });
    check_refusal(code, "cudaEventQuery", [&](cudaStream_t) { return cudaEventQuery(event); });
    check_refusal(code, "cublasCreate", [&](cudaStream_t) {
        return cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaPeekAtLastError();
    });

    Stream stream;
    CapturedGraph graph(
        stream, [&] { DDP_CHECK(cudaMalloc(&memory, 4)); }, cudaStreamCaptureModeRelaxed);
    DDP_CHECK(cudaFree(memory));
}

// Returns what cudaMalloc in a thread of its own says while this one captures.
std::string said_to_another_thread(cudaStreamCaptureMode mode) {
    std::string said;
    OpenCapture open(mode);
    std::thread([&] { said = message_of([] { Buffer<int> allocated(1); }); }).join();
    cudaStreamEndCapture(open.stream, &open.graph);
    if (open.graph != nullptr)
        DDP_CHECK(cudaGraphDestroy(open.graph));
    cudaGetLastError();
    return said;
}

TEST_CASE("what a thread must not call because of another one that captures") {
    require_parts(said_to_another_thread(cudaStreamCaptureModeGlobal),
                  {"while another thread captures one", "cudaStreamCaptureModeThreadLocal"});
    REQUIRE(said_to_another_thread(cudaStreamCaptureModeThreadLocal) == "(nothing was said)");
    REQUIRE(said_to_another_thread(cudaStreamCaptureModeRelaxed) == "(nothing was said)");
}

TEST_CASE("what a graph cannot hold") {
    const auto code = cudaErrorStreamCaptureUnsupported;
    Buffer<int> on_device(1);
    int not_pinned = 0;
    check_refusal(code, "memory that is not pinned", [&](cudaStream_t stream) {
        return cudaMemcpyAsync(on_device.data(), &not_pinned, 4, cudaMemcpyHostToDevice, stream);
    });
    check_refusal(code, "memory that is not pinned", [&](cudaStream_t stream) {
        return cudaMemcpyAsync(&not_pinned, on_device.data(), 4, cudaMemcpyDeviceToHost, stream);
    });
    Stream other;
    CapturedGraph inner(other, [&] { launch(other, {1, 1}, count_up, on_device.data()); });
    check_refusal(code, "a graph within a graph",
                  [&](cudaStream_t stream) { return cudaGraphLaunch(inner.instance(), stream); });
}

TEST_CASE("the default stream beside a capture") {
    require_parts(message_of([] {
                      DDP_CHECK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeRelaxed));
                  }),
                  {"the default stream cannot be captured"});
    Buffer<int> value(std::vector<int>{0});
    {
        OpenCapture open;  // its stream does not wait for the default stream
        DDP_CHECK(cudaMemset(value.data(), 0, 4));
        DDP_CHECK(cudaStreamEndCapture(open.stream, &open.graph));
        DDP_CHECK(cudaGraphDestroy(open.graph));
    }
    cudaStream_t blocking = nullptr;
    DDP_CHECK(cudaStreamCreate(&blocking));
    DDP_CHECK(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeGlobal));
    const cudaError_t refused = cudaMemset(value.data(), 0, 4);
    CHECK(refused == cudaErrorStreamCaptureImplicit);
    require_parts(cudaGetErrorString(refused),
                  {"cudaMemset", "one of them is captured", "cudaStreamNonBlocking"});
    cudaGraph_t graph = nullptr;
    CHECK(cudaStreamEndCapture(blocking, &graph) == cudaErrorStreamCaptureInvalidated);
    cudaGetLastError();
    DDP_CHECK(cudaStreamDestroy(blocking));
    DDP_CHECK(cudaMemset(value.data(), 0, 4));

    Event event;
    check_refusal(cudaErrorStreamCaptureImplicit, "the default stream cannot join a capture",
                  [&](cudaStream_t stream) {
                      DDP_CHECK(cudaEventRecord(event, stream));
                      return cudaStreamWaitEvent(nullptr, event);
                  });
}

TEST_CASE("a capture begins once, and ends where it has begun") {
    Stream stream, joined;
    Event event;
    cudaGraph_t graph = nullptr;
    const auto end = [&](cudaStream_t of) { return cudaStreamEndCapture(of, &graph); };
    CHECK(end(stream) == cudaErrorIllegalState);
    require_parts(cudaGetErrorString(cudaErrorIllegalState), {"this stream is not captured"});
    DDP_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) ==
          cudaErrorIllegalState);
    require_parts(cudaGetErrorString(cudaErrorIllegalState), {"captured already"});
    std::string said;
    std::thread([&] { said = message_of([&] { DDP_CHECK(end(stream)); }); }).join();
    require_parts(said, {"begun by another thread"});
    CHECK(end(stream) == cudaSuccess);
    DDP_CHECK(cudaGraphDestroy(graph));

    DDP_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    std::thread([&] { DDP_CHECK(end(stream)); }).join();
    DDP_CHECK(cudaGraphDestroy(graph));

    DDP_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    event.record(stream);
    joined.wait(event);
    CHECK(end(joined) == cudaErrorStreamCaptureUnmatched);
    require_parts(cudaGetErrorString(cudaErrorStreamCaptureUnmatched), {"begun on another stream"});
    CHECK(end(stream) == cudaErrorStreamCaptureInvalidated);
    CHECK(capture_status(joined) == cudaStreamCaptureStatusNone);
    cudaGetLastError();
}

TEST_CASE("a stream that joins must be waited for, all of its work") {
    Buffer<int> value(std::vector<int>{0});
    Stream stream, joined, third;
    Event forked, half, all;
    cudaGraph_t graph = nullptr;
    const auto capture = [&](auto enqueue) {
        DDP_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
        forked.record(stream);
        joined.wait(forked);
        launch(joined, {1, 1}, count_up, value.data());
        half.record(joined);
        launch(joined, {1, 1}, count_up, value.data());
        all.record(joined);
        enqueue();
        const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
        CHECK(capture_status(joined) == cudaStreamCaptureStatusNone);
        if (ended == cudaSuccess)
            DDP_CHECK(cudaGraphDestroy(graph));
        cudaGetLastError();
        return ended;
    };
    CHECK(capture([] {}) == cudaErrorStreamCaptureUnjoined);
    require_parts(cudaGetErrorString(cudaErrorStreamCaptureUnjoined),
                  {"2 commands", "record an event behind them"});
    CHECK(capture([&] { stream.wait(half); }) == cudaErrorStreamCaptureUnjoined);
    require_parts(cudaGetErrorString(cudaErrorStreamCaptureUnjoined), {"1 command of"});
    CHECK(capture([&] { stream.wait(all); }) == cudaSuccess);
    Event of_third;
    CHECK(capture([&] {  // by way of a third stream
              third.wait(all);
              of_third.record(third);
              stream.wait(of_third);
          }) == cudaSuccess);
    launch(joined, {1, 1}, count_up, value.data());
    joined.synchronize();
    CHECK(value.to_host_now()[0] == 1);
}

TEST_CASE("a capture has no way to what is outside of it") {
    Event never_recorded, outside;
    Stream other;
    outside.record(other);
    check_refusal(cudaErrorStreamCaptureIsolation, "not recorded in the same capture",
                  [&](cudaStream_t stream) { return cudaStreamWaitEvent(stream, outside); });
    Stream stream, second;
    Event of_first, of_second;
    CapturedGraph graph(stream, [&] {
        DDP_CHECK(cudaStreamWaitEvent(stream, never_recorded));
        of_first.record(stream);
    });
    const std::string ended = message_of([&] { other.wait(of_first); });
    require_parts(ended, {"that capture has ended", "record it anew"});

    DDP_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    DDP_CHECK(cudaStreamBeginCapture(second, cudaStreamCaptureModeThreadLocal));
    of_second.record(second);
    CHECK(cudaStreamWaitEvent(stream, of_second) == cudaErrorStreamCaptureMerge);
    require_parts(cudaGetErrorString(cudaErrorStreamCaptureMerge), {"two captures cannot become"});
    cudaGraph_t none = nullptr;
    CHECK(cudaStreamEndCapture(stream, &none) == cudaErrorStreamCaptureInvalidated);
    CHECK(cudaStreamEndCapture(second, &none) == cudaErrorStreamCaptureInvalidated);
    cudaGetLastError();
}

TEST_CASE("a captured stream that is destroyed takes its capture along") {
    cudaStream_t stream = nullptr;
    DDP_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    DDP_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    const cudaError_t destroyed = cudaStreamDestroy(stream);
    CHECK(destroyed == cudaErrorStreamCaptureUnsupported);
    require_parts(cudaGetErrorString(destroyed), {"cudaStreamDestroy", "its capture is given up"});
    cudaGetLastError();
    Buffer<int> allocated(1);
}

TEST_CASE("graphs that are no more") {
    Stream stream;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t instance = nullptr;
    DDP_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    DDP_CHECK(cudaStreamEndCapture(stream, &graph));
    DDP_CHECK(cudaGraphInstantiate(&instance, graph, 0));
    DDP_CHECK(cudaGraphUpload(instance, stream));
    DDP_CHECK(cudaGraphLaunch(instance, stream));  // an empty one is allowed
    DDP_CHECK(cudaGraphDestroy(graph));
    DDP_CHECK(cudaGraphExecDestroy(instance));
    const std::string no_graph = "a graph that was destroyed or never made";
    const std::string no_instance = "an instantiated graph that was destroyed or never made";
    require_parts(message_of([&] { DDP_CHECK(cudaGraphDestroy(graph)); }), {no_graph});
    require_parts(message_of([&] { DDP_CHECK(cudaGraphInstantiate(&instance, graph, 0)); }),
                  {no_graph});
    require_parts(message_of([&] { DDP_CHECK(cudaGraphUpload(instance, stream)); }), {no_instance});
    require_parts(message_of([&] { DDP_CHECK(cudaGraphLaunch(instance, stream)); }), {no_instance});
    require_parts(message_of([&] { DDP_CHECK(cudaGraphExecDestroy(instance)); }), {no_instance});
}

TEST_CASE("child keeps its graphs", "[.child]") {
    Stream stream;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t instance = nullptr;
    DDP_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    DDP_CHECK(cudaStreamEndCapture(stream, &graph));
    DDP_CHECK(cudaGraphInstantiate(&instance, graph, 0));
}

TEST_CASE("graphs that are never destroyed") {
    const ChildResult strict = run_child("child keeps its graphs");
    require_parts(strict.output, {"never destroyed: graphs of cudaStreamEndCapture, 1",
                                  "never destroyed: graphs of cudaGraphInstantiate, 1"});
    REQUIRE(strict.exit_code == 1);
}

TEST_CASE("a graph's kernel that uses memory which was freed meanwhile is named") {
    Stream stream;
    auto value = std::make_unique<Buffer<int>>(std::vector<int>{0});
    CapturedGraph graph(stream, [&] { launch(stream, {1, 1}, count_up, value->data()); });
    const int line = __LINE__ - 1;
    value.reset();
    require_parts(failure_of([&] {
                      graph.launch(stream);
                      stream.synchronize();
                  }),
                  {"count_up", here(line), "freed"});
}

// Waits until the host raises the flag.
__global__ void wait_for_host(const int* flag) {
    while (cuda::atomic_ref<const int, cuda::thread_scope_system>(*flag).load(
               cuda::memory_order_acquire) == 0)
        __nanosleep(2000);
}

TEST_CASE("a cooperative kernel of a graph is in flight from the launch to its end") {
    Stream stream;
    PinnedBuffer<int> flag(1);
    CapturedGraph graph(stream, [&] {
        launch_cooperative(stream, {1, 1}, wait_for_host, flag.data());
    });
    for (int round = 0; round < 2; round++) {
        flag[0] = 0;
        Buffer<int> not_in_flight_yet(1);
        graph.launch(stream);
        require_parts(message_of([] { Buffer<int> allocated(1); }),
                      {"while the cooperative kernel", "wait_for_host"});
        cuda::atomic_ref<int, cuda::thread_scope_system>(flag[0]).store(1,
                                                                        cuda::memory_order_release);
        stream.synchronize();
    }
}

}  // namespace
}  // namespace ddp::test
