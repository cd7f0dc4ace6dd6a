// The turns of a stream's thread: short while its kernels wait for others, and not changed more
// often than pays. (A kernel tells by the slack of its thread's timers, which changes with the
// turns.)
#include <sys/prctl.h>

#include <chrono>

#include "common/gpu/gpu.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

__global__ void note_turns(int* is_short) {
    *is_short = prctl(PR_GET_TIMERSLACK) == 1;  // ns
}

__global__ void compute_for_2_ms() {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point end = Clock::now() + std::chrono::milliseconds(2);
    while (Clock::now() < end) {
    }
}

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

}  // namespace
}  // namespace ddp::test
