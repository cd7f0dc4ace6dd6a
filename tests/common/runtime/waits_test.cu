// Who looks again while it waits, and who sleeps: told by the time that a thread has had a core,
// which other programs do not lengthen, and by how often it has given its core back.
#include <sched.h>
#include <sys/resource.h>

#include <chrono>
#include <iostream>
#include <thread>

#include "common/gpu/gpu.hpp"
#include "common/report/stats.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Clock = std::chrono::steady_clock;

// What a thread has used from its beginning on.
struct Use {
    double core_us = 0;
    long sleeps = 0;
};

Use use_of_this_thread() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return {static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3,
            usage.ru_nvcsw};
}

void wait_us(int microseconds) {
    const Clock::time_point end = Clock::now() + std::chrono::microseconds(microseconds);
    while (Clock::now() < end) {
    }
}

__global__ void compute_us(int microseconds) {
    wait_us(microseconds);
}

__global__ void note_use(Use* use) {
    *use = use_of_this_thread();
}

// Binds the calling thread, and those that it starts, to one of its cores.
class OneCore {
  public:
    OneCore() {
        sched_getaffinity(0, sizeof before_, &before_);
        cpu_set_t one;
        CPU_ZERO(&one);
        int core = 0;
        while (!CPU_ISSET(core, &before_))
            core++;
        CPU_SET(core, &one);
        sched_setaffinity(0, sizeof one, &one);
    }
    ~OneCore() { sched_setaffinity(0, sizeof before_, &before_); }

  private:
    cpu_set_t before_;
};

bool has_one_core() {
    cpu_set_t cores;
    sched_getaffinity(0, sizeof cores, &cores);
    return CPU_COUNT(&cores) == 1;
}

// Returns how long the host had a core while it waited for a kernel and slept; the median.
double host_us_of_a_wait() {
    Stream stream;
    std::vector<double> times;
    for (int round = 0; round < 100; round++) {
        launch(stream, {1, 1}, compute_us, 300);
        const Use before = use_of_this_thread();
        stream.synchronize();
        const Use after = use_of_this_thread();
        if (after.sleeps > before.sleeps)
            times.push_back(after.core_us - before.core_us);
    }
    return median(times);
}

// Returns how long a stream's thread had a core between two kernels, while it had no work, and
// slept; the median.
double stream_us_without_work() {
    Stream stream;
    Buffer<Use> use(2);
    std::vector<double> times;
    for (int round = 0; round < 100; round++) {
        launch(stream, {1, 1}, note_use, use.data());
        stream.synchronize();
        std::this_thread::sleep_for(std::chrono::microseconds(300));
        launch(stream, {1, 1}, note_use, use.data() + 1);
        stream.synchronize();
        const std::vector<Use> seen = use.to_host_now();
        if (seen[1].sleeps > seen[0].sleeps)
            times.push_back(seen[1].core_us - seen[0].core_us);
    }
    return median(times);
}

TEST_CASE("a thread that has one core with those that it waits for sleeps at once") {
    if (has_one_core()) {
        std::cout
            << "SKIPPED: this process has one core, so there is no other way to compare with\n";
        return;
    }
    const double host_looks = host_us_of_a_wait(), stream_looks = stream_us_without_work();
    const OneCore bound;
    const double host_sleeps = host_us_of_a_wait(), stream_sleeps = stream_us_without_work();
    CAPTURE(host_looks, host_sleeps, stream_looks, stream_sleeps);
    REQUIRE(host_looks < 1000);
    // Who looks again and again first takes as long on one core as on several.
    REQUIRE(host_sleeps < 0.75 * host_looks);
    REQUIRE(stream_sleeps < 0.75 * stream_looks);
}

}  // namespace
}  // namespace ddp::test
