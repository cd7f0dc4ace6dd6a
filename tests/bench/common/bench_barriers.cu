// The cost of a barrier of a 256-thread block on a CPU: with this library's fibers, and with two
// other ways of having 256 threads.
#include <ucontext.h>

#include <barrier>
#include <iostream>
#include <memory>
#include <thread>

#include "common/gpu/gpu.hpp"
#include "common/report/bench.hpp"
#include "common/report/csv.hpp"
#include "common/report/main.hpp"
#include "common/report/options.hpp"
#include "common/report/stats.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

__global__ void meet(int barriers, int* count) {
    for (int i = 0; i < barriers; i++) {
        __syncthreads();
        count[threadIdx.x]++;
    }
}

// Lets threads meet by the C library's user contexts, each of which asks the kernel for its signal
// mask.
class UserContexts {
  public:
    UserContexts(int threads, int barriers)
        : contexts_(static_cast<std::size_t>(threads)),
          stacks_(std::make_unique<char[]>(contexts_.size() * stack_bytes)) {
        for (std::size_t i = 0; i < contexts_.size(); i++) {
            getcontext(&contexts_[i]);
            contexts_[i].uc_stack.ss_sp = stacks_.get() + i * stack_bytes;
            contexts_[i].uc_stack.ss_size = stack_bytes;
            contexts_[i].uc_link = i + 1 < contexts_.size() ? &contexts_[i + 1] : &main_;
            const auto self = reinterpret_cast<std::uintptr_t>(this);
            makecontext(&contexts_[i], reinterpret_cast<void (*)()>(&UserContexts::thread), 4,
                        static_cast<unsigned int>(self), static_cast<unsigned int>(self >> 32),
                        static_cast<int>(i), barriers);
        }
    }
    void run() { swapcontext(&main_, &contexts_[0]); }

  private:
    static constexpr std::size_t stack_bytes = 16 << 10;
    static void thread(unsigned int low, unsigned int high, int index, int barriers) {
        auto* all = reinterpret_cast<UserContexts*>(static_cast<std::uintptr_t>(high) << 32 | low);
        const auto self = static_cast<std::size_t>(index);
        for (int i = 0; i < barriers; i++)
            swapcontext(&all->contexts_[self], &all->contexts_[(self + 1) % all->contexts_.size()]);
    }

    std::vector<ucontext_t> contexts_;
    std::unique_ptr<char[]> stacks_;
    ucontext_t main_;
};

void meet_by_os_threads(int threads, int barriers) {
    std::barrier barrier(threads);
    std::vector<std::jthread> all;
    for (int t = 0; t < threads; t++)
        all.emplace_back([&] {
            for (int i = 0; i < barriers; i++)
                barrier.arrive_and_wait();
        });
}

int run(int argc, char** argv) {
    int threads = 256, rounds = 21;
    Options options("bench_barriers",
                    "What a barrier costs when the threads of a block are fibers of a CPU.");
    options.add_int("--threads", threads, {2, 1024}, "threads of the block");
    options.add_int("--rounds", rounds, {3, 100'000}, "measurements of each, taken in turn");
    options.with_quick("--rounds", [&] { rounds = 3; });
    options.refuse({"--ranks", "--processes", "--link", "--timeout", "--data", "--trace", "--seed"},
                   "this bench measures one block");
    const CommonOptions common = options.parse(argc, argv);
    constexpr int barriers = 1000, few_barriers = 20;

    Stream stream;
    Buffer<int> count(static_cast<std::size_t>(threads));
    const auto launch_meeting = [&](int times) {
        return [&, times] {
            const auto meeting = timed([&] {
                launch(stream, {1, static_cast<unsigned int>(threads)}, meet, times, count.data());
                stream.synchronize();
            });
            meeting();  // not measured: the stream's thread may have slept since the last round
            return meeting();
        };
    };
    const std::vector<Measurement> ways = {
        launch_meeting(barriers), launch_meeting(0),
        [&] {
            UserContexts contexts(threads, barriers);
            return timed([&] { contexts.run(); })();
        },
        timed([&] { meet_by_os_threads(threads, few_barriers); })};
    const auto samples = interleave(ways, 1, rounds);

    Table table("A block of " + std::to_string(threads) + " threads",
                {"", "per barrier", "spread", "per thread"});
    CsvWriter csv(common.csv, {"way", "threads", "barrier_us", "spread"});
    const auto line = [&](const std::string& way, const std::vector<double>& seconds, int times) {
        const double each = median(seconds) / times;
        table.row({way, format_seconds(each), format_percent(spread(seconds)),
                   format_seconds(each / threads)});
        csv.row({way, threads, each * 1e6, spread(seconds)});
    };
    line("fibers (this library)", samples[0], barriers);
    line("a whole launch without a barrier", samples[1], 1);
    line("user contexts (ucontext)", samples[2], barriers);
    line("OS threads and std::barrier", samples[3], few_barriers);
    table.note("OS threads: with their start and end, spread over " + std::to_string(few_barriers) +
               " barriers.");
    std::cout << table;
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_main([&] { return run(argc, argv); });
}
