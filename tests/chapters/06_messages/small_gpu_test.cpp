// Ranks on a GPU of 20 multiprocessors and 4 GiB, which the CPU plays. The environment has
// variables with which ranks hang on a GPU.
#include <atomic>
#include <cstdlib>

#include "06_messages/peers.hpp"
#include "06_messages/wait.cuh"
#include "common/gpu/clock.hpp"
#include "cuda_on_cpu/observe.hpp"
#include "cuda_on_cpu/settings.hpp"
#include "tests/chapters/06_messages/neighbours.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

TEST_CASE("a rank's kernels leave room for those of all others") {
    REQUIRE(blocks_of_rank(1) == 10);
    REQUIRE(blocks_of_rank(4) == 2);
    REQUIRE(blocks_of_rank(10) == 1);
    REQUIRE(shape_of_transfer(1 << 20, 1).grid.x == 3);  // as CUDA_ON_CPU says
    REQUIRE(shape_of_transfer(1 << 20, 4).grid.x == 2);
}

// Each rank sends and receives at the same time, on two streams.
TEST_CASE("as many ranks as it can run work together") {
    for (int ranks : {4, 10}) {
        World world(thread_options(ranks));
        std::atomic<int> wrong = 0;
        world.run([&](Rank& rank) { wrong += count_wrong_at_neighbours(rank); });
        REQUIRE(wrong == 0);
    }
}

TEST_CASE("more ranks, and more streams, are refused before they wait") {
    World eleven(thread_options(11));
    REQUIRE(has(failure_of(eleven, [](Rank& rank) { Peers peers(rank, 1 << 16); }),
                "11 ranks share a GPU of 20 multiprocessors"));
    World world(thread_options(8));
    REQUIRE(has(failure_of(world,
                           [](Rank& rank) {
                               Peers peers(rank, 1 << 16);
                               ArenaBuffer<int> data = peers.allocate<int>(1);
                               std::vector<Stream> streams(4);
                               for (Stream& stream : streams)  // nobody sends
                                   peers.receive(data.data(), 1, (rank.rank() + 1) % 8, stream);
                           }),
                "8 ranks with 5 streams each share a GPU of 32 queues, where one stream would wait "
                "for another's kernel: start at most 6 ranks on it."));
    REQUIRE(has(failure_of(world,
                           [](Rank& rank) {
                               Peers peers(rank, 1 << 16);
                               const std::vector<Stream> copies(4);  // on which no kernel waits
                               Stream stream;
                               ArenaBuffer<int> data = peers.allocate<int>(1);
                               rank.barrier();
                               if (rank.rank() == 0)  // the others keep their streams meanwhile
                                   peers.receive(data.data(), 1, 1, stream);
                               rank.barrier();
                           }),
                "8 ranks with 40 streams in all share a GPU of 32 queues, where one stream would "
                "wait for another's kernel: start at most 6 ranks on it."));
}

TEST_CASE("variables with which kernels would not run side by side are overwritten") {
    REQUIRE(std::string(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS")) == "32");
    REQUIRE(std::string(std::getenv("CUDA_MODULE_LOADING")) == "EAGER");
}

// A variable of this process, until the end of the test.
struct Variable {
    Variable(const char* name, const char* value) : name(name) { setenv(name, value, 1); }
    ~Variable() { unsetenv(name); }
    const char* name;
};

TEST_CASE("whoever keeps the variables is told what they allow") {
    {
        const Variable keep("DDP_KEEP_CUDA_VARIABLES", "1"),
            two("CUDA_DEVICE_MAX_CONNECTIONS", "2");
        let_kernels_run_side_by_side();
        World world(thread_options(2));
        REQUIRE(has(failure_of(world,
                               [](Rank& rank) {
                                   Peers peers(rank, 1 << 16);
                                   Stream stream;
                                   ArenaBuffer<int> data = peers.allocate<int>(1);
                                   peers.receive(data.data(), 1, 1 - rank.rank(), stream);
                               }),
                    "2 ranks with 2 streams each share a GPU of 2 queues"));
    }
    REQUIRE(device_limits().queues == 8);  // of a GPU whose variable nobody has set
    let_kernels_run_side_by_side();
    REQUIRE(device_limits().queues == 32);
}

TEST_CASE("launches that wait for their kernels are refused to several ranks") {
    const Variable blocking("CUDA_LAUNCH_BLOCKING", "1");
    World world(thread_options(2));
    REQUIRE(
        has(failure_of(world, [](Rank& rank) { Peers peers(rank, 1 << 16); }),
            "CUDA_LAUNCH_BLOCKING makes each launch wait for its kernel, which here may wait for "
            "the next launch of another rank: unset it, or start one rank only."));
    World alone(thread_options(1));
    REQUIRE(failure_of(alone, [](Rank& rank) { Peers peers(rank, 1 << 16); }).empty());
}

// Runs until the host says so.
__global__ void occupy(unsigned int* is_over) {
    while (load_acquire(*is_over) == 0)
        __nanosleep(1000);
}

// One multiprocessor is left, and each of the two ranks needs one.
TEST_CASE("ranks whose kernels do not run at the same time are told what may keep them apart") {
    // The program whose kernel this is does not ask whether a rank allocates memory beside it.
    const cuda_on_cpu::Settings settings = cuda_on_cpu::settings();
    cuda_on_cpu::Settings lenient = settings;
    lenient.strict = false;
    cuda_on_cpu::set_settings(lenient);
    PinnedBuffer<unsigned int> is_over(1);
    is_over[0] = 0;
    struct End {
        ~End() { std::atomic_ref<unsigned int>(is_over).store(1); }
        unsigned int& is_over;
    };
    Stream other;
    launch_cooperative(other, {19, 1}, occupy, is_over.data());
    World world(thread_options(2, 1));
    const std::string failure = failure_of(world, [&](Rank& rank) {
        const End end{is_over[0]};
        Peers peers(rank, 1 << 16);
    });
    other.synchronize();
    cuda_on_cpu::set_settings(settings);
    REQUIRE(has(failure,
                "the kernels of these ranks do not run at the same time, although each waits for "
                "the others: a debugger, a profiler, compute-sanitizer or another program on the "
                "same GPU may keep them apart, so run without it, or with --ranks 1"));
    World again(thread_options(2, 1));
    REQUIRE(failure_of(again, [](Rank& rank) { Peers peers(rank, 1 << 16); }).empty());
}

// By DDP_PLAIN_LAUNCHES=1, in a run of its own. A rehearsal is one cooperative kernel, or none.
TEST_CASE("kernels that wait for others are launched like all others", "[.plain]") {
    static std::atomic<int> cooperative, plain;
    cuda_on_cpu::observe_kernels([](const cuda_on_cpu::FinishedKernel& kernel) {
        (kernel.shape.cooperative ? cooperative : plain)++;
    });
    World world(thread_options(4));
    std::atomic<int> wrong = 0;
    world.run([&](Rank& rank) { wrong += count_wrong_at_neighbours(rank); });
    cuda_on_cpu::observe_kernels(nullptr);
    REQUIRE(wrong == 0);
    REQUIRE(cooperative == 0);
    REQUIRE(plain > 8);
}

}  // namespace
}  // namespace ddp::test
