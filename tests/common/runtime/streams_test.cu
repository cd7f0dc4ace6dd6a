// Streams, events and host functions: what runs in order, what runs at the same time, and what
// waits for what. The same source for a CPU and for a GPU.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cuda/atomic>
#include <thread>
#include <vector>

#include "common/gpu/gpu.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using SystemFlag = cuda::atomic_ref<int, cuda::thread_scope_system>;

// Waits until the flag is raised, for some seconds at most. Writes 1 to `seen` if it was.
__global__ void wait_for_flag(int* flag, int* seen) {
    SystemFlag raised(*flag);
    for (int round = 0; round < 1'000'000 && *seen == 0; round++) {
        *seen = raised.load(cuda::memory_order_acquire);
        __nanosleep(2000);
    }
}

__global__ void raise_flag(int* flag) {
    SystemFlag(*flag).store(1, cuda::memory_order_release);
}

// Not commutative: any other order gives another value.
__global__ void append(std::uint64_t* value, int digit) {
    *value = *value * 31 + static_cast<std::uint64_t>(digit);
}

__global__ void add_one(int* value) {
    atomicAdd(value, 1);
}

__global__ void fill(int* data, int n, int value) {
    for (std::size_t i : grid_range(static_cast<std::size_t>(n)))
        data[i] = value + static_cast<int>(i);
}

// A flag in pinned memory, a kernel that waits for it, and the means to end its wait.
class Gate {
  public:
    Gate() : flag_(1), seen_(std::vector<int>{0}) {
        flag_[0] = 1;  // a first pass loads the kernel, or its first launch might wait for others
        Stream stream;
        launch(stream, {1, 1}, wait_for_flag, flag_.data(), seen_.data());
        stream.synchronize();
        seen_.copy_from(std::vector<int>{0});
        flag_[0] = 0;
    }
    void close(cudaStream_t stream) {
        launch(stream, {1, 1}, wait_for_flag, flag_.data(), seen_.data());
    }
    void open() { SystemFlag(flag_[0]).store(1, cuda::memory_order_release); }
    bool was_passed() const { return seen_.to_host_now()[0] == 1; }

  private:
    PinnedBuffer<int> flag_;
    Buffer<int> seen_;
};

// Loads the kernels that tests launch behind or beside one that waits.
struct LoadedKernels {
    LoadedKernels() {
        Stream stream;
        Buffer<int> data(std::vector<int>{0});
        Buffer<std::uint64_t> value(std::vector<std::uint64_t>{0});
        launch(stream, {1, 1}, raise_flag, data.data());
        launch(stream, {1, 1}, add_one, data.data());
        launch(stream, {1, 1}, fill, data.data(), 1, 1);
        launch(stream, {1, 1}, append, value.data(), 1);
        stream.synchronize();
    }
};

std::uint64_t appended(int first, int last) {
    std::uint64_t value = 0;
    for (int digit = first; digit < last; digit++)
        value = value * 31 + static_cast<std::uint64_t>(digit);
    return value;
}

TEST_CASE("a stream runs in order") {
    Stream stream;
    Buffer<std::uint64_t> value(1);
    PinnedBuffer<std::uint64_t> copy(1);
    DDP_CHECK(cudaMemsetAsync(value.data(), 0, 8, stream));
    for (int digit = 1; digit < 500; digit++)
        launch(stream, {1, 1}, append, value.data(), digit);
    DDP_CHECK(cudaMemcpyAsync(copy.data(), value.data(), 8, cudaMemcpyDeviceToHost, stream));
    launch(stream, {1, 1}, append, value.data(), 500);
    stream.synchronize();
    REQUIRE(copy[0] == appended(1, 500));
    REQUIRE(value.to_host_now()[0] == appended(1, 501));
}

TEST_CASE("the host goes on while a kernel runs") {
    Gate gate;
    Stream stream;
    gate.close(stream);
    REQUIRE(forget_not_ready(cudaStreamQuery(stream)) == cudaErrorNotReady);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    REQUIRE(forget_not_ready(cudaStreamQuery(stream)) == cudaErrorNotReady);
    gate.open();
    stream.synchronize();
    REQUIRE(cudaStreamQuery(stream) == cudaSuccess);
    REQUIRE(gate.was_passed());
}

// A program that checks its last error would see a failure that is none. CUDA 13 keeps none there
// on an H100; a CPU does.
TEST_CASE("\"not ready\" may stay as the last error, and no launch reports it as its own") {
    LoadedKernels loaded;
    Gate gate;
    Stream stream, other;
    Event end, start;
    Buffer<int> value(std::vector<int>{0});
    gate.close(stream);
    start.record(stream);
    end.record(stream);
    float milliseconds = 0;
    const auto ask = [&](int which) {
        return which == 0   ? cudaStreamQuery(stream)
               : which == 1 ? cudaEventQuery(end)
                            : cudaEventElapsedTime(&milliseconds, start, end);
    };
    const int questions = kernels_run_on_cpu ? 3 : 2;  // of the last one CUDA does not say it
    for (int which = 0; which < questions; which++) {
        REQUIRE(ask(which) == cudaErrorNotReady);
        launch(other, {1, 1}, add_one, value.data());
        launch_cooperative(other, {1, 1}, add_one, value.data());
        const cudaError_t left = cudaPeekAtLastError();
        REQUIRE((left == cudaErrorNotReady || (!kernels_run_on_cpu && left == cudaSuccess)));
        REQUIRE(cudaGetLastError() == left);
        REQUIRE(cudaGetLastError() == cudaSuccess);
        REQUIRE(forget_not_ready(ask(which)) == cudaErrorNotReady);
        REQUIRE(cudaGetLastError() == cudaSuccess);
    }
    gate.open();
    stream.synchronize();
    other.synchronize();
    REQUIRE(value.to_host_now()[0] == 2 * questions);
}

TEST_CASE("two streams run at the same time") {
    LoadedKernels loaded;
    Stream first, second;
    Buffer<int> flag(std::vector<int>{0}), seen(std::vector<int>{0});
    launch(first, {1, 1}, wait_for_flag, flag.data(), seen.data());
    launch(second, {1, 1}, raise_flag, flag.data());  // only now can the first stream's kernel end
    second.synchronize();
    first.synchronize();
    REQUIRE(seen.to_host_now()[0] == 1);
}

TEST_CASE("an event is done when its stream has come there") {
    Gate gate;
    Stream stream;
    Event start, end;
    REQUIRE(cudaEventQuery(start) == cudaSuccess);  // never recorded: nothing to wait for
    start.synchronize();
    start.record(stream);
    gate.close(stream);
    end.record(stream);
    start.synchronize();
    REQUIRE(forget_not_ready(cudaEventQuery(end)) == cudaErrorNotReady);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    gate.open();
    end.synchronize();
    REQUIRE(cudaEventQuery(end) == cudaSuccess);
    const double seconds = end.seconds_since(start);
    REQUIRE(seconds > 0.025);
    REQUIRE(seconds < 5);
}

TEST_CASE("a stream waits for an event of another") {
    LoadedKernels loaded;
    Gate gate;
    Stream first, second;
    Event event;
    Buffer<std::uint64_t> value(std::vector<std::uint64_t>{0});
    second.wait(event);  // never recorded: goes on at once
    launch(second, {1, 1}, append, value.data(), 1);
    second.synchronize();
    gate.close(first);
    launch(first, {1, 1}, append, value.data(), 2);
    event.record(first);
    second.wait(event);
    launch(second, {1, 1}, append, value.data(), 3);
    REQUIRE(forget_not_ready(cudaStreamQuery(second)) == cudaErrorNotReady);
    gate.open();
    second.synchronize();
    REQUIRE(value.to_host_now()[0] == appended(1, 4));
    first.synchronize();
}

TEST_CASE("a wait is for the recording that stood when it was called") {
    LoadedKernels loaded;
    Gate gate;
    Stream slow, waiting, idle;
    Event event;
    Buffer<std::uint64_t> value(std::vector<std::uint64_t>{0});
    gate.close(slow);
    launch(slow, {1, 1}, append, value.data(), 1);
    event.record(slow);
    waiting.wait(event);
    event.record(idle);  // again, where it is done at once
    event.synchronize();
    launch(waiting, {1, 1}, append, value.data(), 2);
    idle.synchronize();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    REQUIRE(forget_not_ready(cudaStreamQuery(waiting)) == cudaErrorNotReady);
    gate.open();
    waiting.synchronize();
    REQUIRE(value.to_host_now()[0] == appended(1, 3));
    slow.synchronize();
}

TEST_CASE("a later recording of an event is not waited for") {
    LoadedKernels loaded;
    Gate gate;
    Stream first, second;
    Event event;
    Buffer<int> value(std::vector<int>{0});
    event.record(first);
    second.wait(event);
    gate.close(first);
    event.record(first);
    launch(second, {1, 1}, add_one, value.data());
    second.synchronize();
    REQUIRE(forget_not_ready(cudaEventQuery(event)) == cudaErrorNotReady);
    gate.open();
    first.synchronize();
    REQUIRE(value.to_host_now()[0] == 1);
}

TEST_CASE("the default stream and blocking streams wait for each other") {
    LoadedKernels loaded;
    Gate gate;
    Stream free_of_it;
    cudaStream_t blocking = nullptr;
    DDP_CHECK(cudaStreamCreate(&blocking));
    Buffer<std::uint64_t> value(std::vector<std::uint64_t>{0});
    Buffer<int> other(std::vector<int>{0});
    DDP_CHECK(cudaDeviceSynchronize());

    gate.close(blocking);
    launch(blocking, {1, 1}, append, value.data(), 1);
    launch(nullptr, {1, 1}, append, value.data(), 2);
    launch(blocking, {1, 1}, append, value.data(), 3);
    launch(free_of_it, {1, 1}, add_one, other.data());
    free_of_it.synchronize();  // cudaStreamNonBlocking: waits for none of them
    REQUIRE(forget_not_ready(cudaStreamQuery(nullptr)) == cudaErrorNotReady);
    REQUIRE(forget_not_ready(cudaStreamQuery(blocking)) == cudaErrorNotReady);
    gate.open();
    DDP_CHECK(cudaStreamSynchronize(blocking));
    REQUIRE(value.to_host_now()[0] == appended(1, 4));
    REQUIRE(other.to_host_now()[0] == 1);
    DDP_CHECK(cudaStreamDestroy(blocking));
}

struct Step {
    std::vector<int>* log;
    int number;
};

TEST_CASE("host functions run in their stream's order") {
    Stream stream;
    Buffer<int> value(std::vector<int>{0});
    PinnedBuffer<int> copy(1);
    std::vector<int> log;
    std::vector<Step> steps;
    for (int i = 0; i < 100; i++)
        steps.push_back({&log, i});
    for (Step& step : steps) {
        launch(stream, {1, 1}, add_one, value.data());
        DDP_CHECK(cudaLaunchHostFunc(
            stream,
            [](void* data) {
                auto* step = static_cast<Step*>(data);
                step->log->push_back(step->number);
            },
            &step));
    }
    DDP_CHECK(cudaMemcpyAsync(copy.data(), value.data(), 4, cudaMemcpyDeviceToHost, stream));
    stream.synchronize();
    REQUIRE(log.size() == 100);
    for (int i = 0; i < 100; i++)
        REQUIRE(log[static_cast<std::size_t>(i)] == i);
    REQUIRE(copy[0] == 100);
}

// More than any queue holds: the host must wait for room, and nothing may be lost.
void enqueue_behind_a_closed_gate(cudaStream_t stream) {
    LoadedKernels loaded;
    Gate gate;
    Buffer<std::uint64_t> value(std::vector<std::uint64_t>{0});
    DDP_CHECK(cudaDeviceSynchronize());
    gate.close(stream);
    std::thread opener([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        gate.open();
    });
    for (int digit = 1; digit < 3000; digit++)
        launch(stream, {1, 1}, append, value.data(), digit);
    DDP_CHECK(cudaStreamSynchronize(stream));
    opener.join();
    REQUIRE(value.to_host_now()[0] == appended(1, 3000));
}

TEST_CASE("more commands than a queue holds wait behind a kernel") {
    SECTION("on a stream of its own") {
        Stream stream;
        enqueue_behind_a_closed_gate(stream);
    }
    SECTION("on a stream that waits for the default stream") {
        cudaStream_t blocking = nullptr;
        DDP_CHECK(cudaStreamCreate(&blocking));
        enqueue_behind_a_closed_gate(blocking);
        DDP_CHECK(cudaStreamDestroy(blocking));
    }
    SECTION("on the default stream") {
        enqueue_behind_a_closed_gate(nullptr);
    }
}

// Each launch on a blocking stream also waits for the default stream: either command may be the one
// that finds the queue full, and `one_more` shifts which it is.
void fill_both_queues(bool one_more) {
    LoadedKernels loaded;
    Gate gate;
    cudaStream_t blocking = nullptr;
    DDP_CHECK(cudaStreamCreate(&blocking));
    Buffer<std::uint64_t> value(std::vector<std::uint64_t>{0}),
        other(std::vector<std::uint64_t>{0});
    Event passed;
    DDP_CHECK(cudaDeviceSynchronize());
    gate.close(nullptr);
    if (one_more)
        DDP_CHECK(cudaStreamWaitEvent(blocking, passed, 0));
    std::thread opener([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        gate.open();
    });
    for (int digit = 1; digit < 1500; digit++) {
        launch(blocking, {1, 1}, append, value.data(), digit);
        launch(nullptr, {1, 1}, append, other.data(), digit);
    }
    DDP_CHECK(cudaDeviceSynchronize());
    opener.join();
    REQUIRE(value.to_host_now()[0] == appended(1, 1500));
    REQUIRE(other.to_host_now()[0] == appended(1, 1500));
    DDP_CHECK(cudaStreamDestroy(blocking));
}

TEST_CASE("full queues of streams that wait for each other") {
    fill_both_queues(false);
    fill_both_queues(true);
}

TEST_CASE("many host threads launch") {
    constexpr int thread_count = 8, launches = 200;
    Stream shared;
    Buffer<int> on_shared(std::vector<int>{0}), on_own(std::vector<int>{0});
    std::atomic<int> failures{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < thread_count; i++)
        threads.emplace_back([&] {
            try {
                Stream own;
                Event event;
                for (int k = 0; k < launches; k++) {
                    launch(shared, {2, 3}, add_one, on_shared.data());
                    launch(own, {2, 3}, add_one, on_own.data());
                    event.record(own);
                    shared.wait(event);
                }
                own.synchronize();
            } catch (const GpuError&) {
                failures++;
            }
        });
    for (std::thread& thread : threads)
        thread.join();
    shared.synchronize();
    REQUIRE(failures == 0);
    REQUIRE(on_shared.to_host_now()[0] == thread_count * launches * 6);
    REQUIRE(on_own.to_host_now()[0] == thread_count * launches * 6);
}

TEST_CASE("copying to memory that is not pinned is done when the call returns") {
    Stream stream;
    constexpr int n = 100'003;
    Buffer<int> data(n);
    std::vector<int> host(n, -5);
    for (int round = 0; round < 5; round++) {
        launch(stream, grid_for(n), fill, data.data(), n, 1000 * round);
        DDP_CHECK(cudaMemcpyAsync(host.data(), data.data(), data.bytes(), cudaMemcpyDeviceToHost,
                                  stream));
        REQUIRE(host[0] == 1000 * round);
        REQUIRE(host[n - 1] == 1000 * round + n - 1);
    }
    stream.synchronize();
}

TEST_CASE("destroying a stream waits for nothing, and a synchronization waits for its work") {
    Gate gate;
    cudaStream_t stream = nullptr;
    DDP_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    gate.close(stream);
    Event behind;
    DDP_CHECK(cudaEventRecord(behind, stream));
    DDP_CHECK(cudaStreamDestroy(stream));
    REQUIRE(forget_not_ready(cudaEventQuery(behind)) == cudaErrorNotReady);
    gate.open();
    DDP_CHECK(cudaDeviceSynchronize());
    REQUIRE(cudaEventQuery(behind) == cudaSuccess);
    REQUIRE(gate.was_passed());
}

#if !defined(DDP_CUDA)  // CUDA does not say so
TEST_CASE("the default stream waits for a blocking stream that was destroyed") {
    Gate gate;
    cudaStream_t stream = nullptr;
    DDP_CHECK(cudaStreamCreate(&stream));
    gate.close(stream);
    DDP_CHECK(cudaStreamDestroy(stream));
    Event behind;
    DDP_CHECK(cudaEventRecord(behind, nullptr));
    for (int look = 0; look < 100; look++) {  // time enough for one that does not wait
        REQUIRE(forget_not_ready(cudaEventQuery(behind)) == cudaErrorNotReady);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    gate.open();
    DDP_CHECK(cudaStreamSynchronize(nullptr));
    REQUIRE(gate.was_passed());
}
#endif

TEST_CASE("a destroyed stream finishes its work") {
    Buffer<std::uint64_t> value(std::vector<std::uint64_t>{0});
    Buffer<int> data(100'003);
    cudaStream_t stream = nullptr;
    DDP_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int digit = 1; digit < 100; digit++) {
        launch(stream, grid_for(100'003), fill, data.data(), 100'003, digit);
        launch(stream, {1, 1}, append, value.data(), digit);
    }
    DDP_CHECK(cudaStreamDestroy(stream));
    DDP_CHECK(cudaDeviceSynchronize());
    REQUIRE(value.to_host_now()[0] == appended(1, 100));
    REQUIRE(data.to_host_now()[100'002] == 99 + 100'002);
}

// ---- Two kernels that talk: plain data, published by a flag with release and acquire.

// In round r the kernel whose number is r % 2 writes a message, and the other one checks it. If the
// other one does not come, this one stops waiting after `max_polls` looks, and finds wrong
// messages.
__global__ void talk(int me, int rounds, int max_polls, int* message, int* round_done, int* wrong) {
    const int i = static_cast<int>(threadIdx.x), size = static_cast<int>(blockDim.x);
    SystemFlag done(*round_done);
    int polls = 0;
    for (int round = 0; round < rounds; round++) {
        const bool writes = round % 2 == me;
        if (writes)
            message[(i * 7) % size] = round * 1000 + i;
        __syncthreads();
        if (i == 0 && writes)
            done.store(round + 1, cuda::memory_order_release);
        if (i == 0 && !writes)
            for (; done.load(cuda::memory_order_acquire) <= round && polls < max_polls; polls++)
                __nanosleep(100);
        __syncthreads();
        if (!writes && message[(i * 7) % size] != round * 1000 + i)
            atomicAdd(wrong, 1);
        __syncthreads();
    }
}

TEST_CASE("two kernels pass messages") {
    constexpr int round_count = 1000;
    Stream streams[2];
    Buffer<int> message(32), done(std::vector<int>{0}), wrong(std::vector<int>{0});
    for (int me : {0, 1})
        launch_cooperative(streams[me], {1, 32}, talk, me, round_count, 20'000'000, message.data(),
                           done.data(), wrong.data());
    streams[0].synchronize();
    streams[1].synchronize();
    REQUIRE(done.to_host_now()[0] == round_count);
    REQUIRE(wrong.to_host_now()[0] == 0);
}

TEST_CASE("a kernel whose partner does not run ends") {
    Stream stream;
    Buffer<int> message(std::vector<int>(32, -1)), done(std::vector<int>{0}),
        wrong(std::vector<int>{0});
    launch_cooperative(stream, {1, 32}, talk, 1, 1, 1000, message.data(), done.data(),
                       wrong.data());
    stream.synchronize();
    REQUIRE(wrong.to_host_now()[0] == 32);
}

}  // namespace
}  // namespace ddp::test
