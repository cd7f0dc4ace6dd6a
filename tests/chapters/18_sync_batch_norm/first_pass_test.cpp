// The first pass on a GPU that loads kernels, which the CPU plays: what follows a layer may need
// kernels of its own, and loads none of them while the layer's collective waits for another rank.
#include <atomic>
#include <memory>
#include <thread>

#include "03_network/layers/matrix.hpp"
#include "10_nodes/make_communicator.hpp"
#include "18_sync_batch_norm/sync_batch_norm.hpp"
#include "common/report/bench.hpp"
#include "tests/chapters/support/replicas.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// Lets rank 1 come late: when rank 0 has gone on, or a fifth of a second has passed.
void come_late(Rank& rank, const std::atomic<int>& passed, int pass) {
    const Stopwatch watch;
    while (rank.rank() == 1 && passed < pass && watch.seconds() < 0.2)
        std::this_thread::yield();
}

}  // namespace

TEST_CASE("products behind a layer's first forward and backward find no kernel that waits",
          "[.played_gpu]") {
    World world(thread_options(2));
    std::atomic<int> passed = 0;
    const std::string failure = failure_of(world, [&](Rank& rank) {
        auto& device = make_run_scoped<Device>(rank, test_memory);
        const auto communicator = make_communicator("native", rank, 1 << 20);
        SyncBatchNorm norm(std::make_unique<BatchNorm2d>("norm", device, 1), *communicator);
        const Tensor x(device, {1, 1, 1, 1}, std::vector<float>{1.0f + rank.rank()});
        const auto input = std::make_shared<Parameter>("input", x);  // whose gradient is asked for
        const Tensor room(device, {64, 64}, std::vector<float>(64 * 64));
        const auto multiply_first = [&](int n) {  // the first product of this shape
            multiply_matrices(device, {room.data(), n, n}, {room.data(), n, n}, room.data());
            passed += rank.rank() == 0;
        };
        Tape tape(device);
        rank.barrier();  // both have copied what they compute with: no kernel waits before
        come_late(rank, passed, 1);
        const Variable y = norm.forward(tape.parameter(input));
        come_late(rank, passed, 2);
        multiply_first(37 + rank.rank());
        come_late(rank, passed, 2);
        tape.backward(y);
        multiply_first(41 + rank.rank());
        device.stream().synchronize();
    });
    REQUIRE(failure == "");
}

}  // namespace ddp::test
