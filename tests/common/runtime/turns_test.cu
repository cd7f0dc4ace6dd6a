// The turns of a stream's thread: short while its kernels wait for others, and not changed more
// often than pays. (A kernel tells by the slack of its thread's timers, which changes with the
// turns.) And who waits on a core on which another stream computes does not give it away.
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <chrono>
#include <cuda/atomic>
#include <thread>

#include "common/gpu/gpu.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

__global__ void note_turns(int* is_short) {
    *is_short = prctl(PR_GET_TIMERSLACK) == 1;  // ns
}

__device__ void compute_for(std::chrono::microseconds time) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point end = Clock::now() + time;
    while (Clock::now() < end) {
    }
}

__global__ void compute_for_2_ms() {
    compute_for(std::chrono::milliseconds(2));
}

using Flag = cuda::atomic_ref<int, cuda::thread_scope_system>;

__global__ void compute_until(int* begun, int* stop) {
    Flag(*begun).store(1);
    while (Flag(*stop).load() == 0) {
    }
}

// Looks for something that does not come, until the looks of a breath each are over, and once more.
// Notes how often its thread has slept: one that yields does not leave its core of its own will.
__global__ void look_once_more(long* sleeps, int* stop) {
    constexpr int spins = 12;  // as in block.cpp
    const auto all_sleeps = [] {
        rusage usage{};
        getrusage(RUSAGE_THREAD, &usage);
        return usage.ru_nvcsw;
    };
    const auto look = [](int times) {
        for (int looks = 0; looks < times; looks++)
            __nanosleep(20);
    };
    look(2);  // the first ones are slow, and whoever takes long begins a new wait
    compute_for(std::chrono::microseconds(5));
    const long before = all_sleeps();
    look(spins + 1);
    *sleeps = all_sleeps() - before;
    Flag(*stop).store(1);
}

// Binds the calling thread, and the streams that it makes, to the core that it has.
class OnOneCore {
  public:
    OnOneCore() {
        sched_getaffinity(0, sizeof before_, &before_);
        cpu_set_t core;
        CPU_ZERO(&core);
        CPU_SET(static_cast<std::size_t>(sched_getcpu()), &core);
        sched_setaffinity(0, sizeof core, &core);
    }
    ~OnOneCore() { sched_setaffinity(0, sizeof before_, &before_); }

  private:
    cpu_set_t before_;
};

TEST_CASE("turns are short for kernels that wait for others, and for a millisecond behind them") {
    Stream stream;
    Buffer<int> is_short(1);
    const auto in_kernel = [&] {
        launch(stream, {1, 1}, note_turns, is_short.data());
        stream.synchronize();
        return is_short.to_host_now()[0] == 1;
    };
    const auto in_cooperative_kernel = [&] {
        launch_cooperative(stream, {1, 1}, note_turns, is_short.data());
        stream.synchronize();
        return is_short.to_host_now()[0] == 1;
    };
    REQUIRE_FALSE(in_kernel());
    for (int round = 0; round < 2; round++) {
        REQUIRE(in_cooperative_kernel());
        REQUIRE(in_kernel());  // a change would take longer than the kernel
        launch(stream, {1, 1}, compute_for_2_ms);
        REQUIRE_FALSE(in_kernel());
    }
}

TEST_CASE("a kernel that waits does not yield to a stream that computes on its core, but sleeps") {
    const OnOneCore bound;
    PinnedBuffer<int> flags(2);
    PinnedBuffer<long> sleeps(1);
    int rounds_asleep = 0;
    for (int round = 0; round < 5; round++) {
        Stream computing, waiting;
        int &begun = flags[0] = 0, &stop = flags[1] = 0;
        launch(computing, {1, 1}, compute_until, &begun, &stop);
        while (Flag(begun).load() == 0)
            std::this_thread::yield();
        launch_cooperative(waiting, {1, 1}, look_once_more, sleeps.data(), &stop);
        waiting.synchronize();
        computing.synchronize();
        rounds_asleep += sleeps[0] > 0 ? 1 : 0;
    }
    // One whose thread is pushed aside between two looks begins its looks of a breath again.
    REQUIRE(rounds_asleep >= 3);
}

}  // namespace
}  // namespace ddp::test
