// Ranks that share a device. (This test runs with two devices.)
#include "06_messages/support/shared_device.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <thread>

#include "06_messages/peers.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/common/report/temporary_folder.hpp"
#include "tests/support/catch.hpp"

// Two GPUs of a kind that NVIDIA sells without peer access, while `are_apart`.
static bool are_apart = false;
cudaError_t ask_for_access(int* can, int own, int other) asm("__real_" DDP_CAN_ACCESS_PEER);
cudaError_t can_access(int* can, int own, int other) asm("__wrap_" DDP_CAN_ACCESS_PEER);
cudaError_t can_access(int* can, int own, int other) {
    const cudaError_t status = ask_for_access(can, own, other);
    *can = are_apart ? 0 : *can;
    return status;
}

namespace ddp::test {
namespace {

constexpr DeviceLimits large{132, 32}, small{20, 32};

TEST_CASE("ranks know who shares their device by its address") {
    World world(thread_options(5));
    world.run([](Rank& rank) {
        rank.select_device();
        const SharedDevice device = find_shared_device(rank);
        const bool is_even = rank.rank() % 2 == 0;
        if (device.address != (is_even ? "0000:00:00.0" : "0000:01:00.0") ||
            device.ranks != (is_even ? std::vector<int>{0, 2, 4} : std::vector<int>{1, 3}) ||
            device.is_only_one || device.processes != 1 || device.max_ranks != 3 ||
            ranks_on_a_device(rank) != 3)
            throw std::runtime_error("rank " + std::to_string(rank.rank()) + " is wrong");
    });
}

TEST_CASE("processes share a GPU only if they need not take turns") {
    const SharedDevice alone{"0000:1b:00.0", {3}, false, 1},
        shared{"0000:1b:00.0", {0, 2}, false, 2}, threads{"0000:1b:00.0", {0, 1, 2, 3}, true, 1};
    // Four processes, each with a GPU of its own, whatever number it has there.
    REQUIRE(refusal(alone, large, true, false).empty());
    REQUIRE(refusal(threads, large, true, false).empty());
    REQUIRE(refusal(shared, large, false, false).empty());
    REQUIRE(
        refusal(shared, large, true, false) ==
        "2 processes cannot share the GPU 0000:1b:00.0 well, because their kernels take turns of "
        "milliseconds, and each message would cost one: use --ranks, which makes threads, start no "
        "more processes than there are GPUs, start NVIDIA's MPS, or try it with --slowly.");
}

TEST_CASE("a link is simulated within one GPU") {
    const SharedDevice all{"0000:1b:00.0", {0, 1}, true, 1}, half{"0000:1b:00.0", {0, 2}, false, 1};
    REQUIRE(refusal(all, large, false, true).empty());
    REQUIRE(refusal(half, large, false, false).empty());
    REQUIRE(refusal(half, large, false, true) ==
            "the simulated link works within one GPU: leave --link out, or let the program see one "
            "GPU only (CUDA_VISIBLE_DEVICES=0).");
}

TEST_CASE("two GPUs that cannot reach each other are named, and what to do") {
    are_apart = true;
    World world(thread_options(2));
    const auto meet = [](Rank& rank) {
        rank.select_device();
        Peers peers(rank, 1 << 20);
    };
    REQUIRE_THROWS_WITH(world.run(meet), ContainsSubstring("cannot reach the memory of GPU") &&
                                             ContainsSubstring("(CUDA_VISIBLE_DEVICES=0)"));
    are_apart = false;
}

TEST_CASE("more ranks than a small GPU can run are refused") {
    SharedDevice device{"0000:00:00.0", std::vector<int>(10), true, 1};
    REQUIRE(refusal(device, small, false, false).empty());
    device.ranks.resize(11);
    REQUIRE(
        refusal(device, small, false, false) ==
        "11 ranks share a GPU of 20 multiprocessors, where each needs two for kernels that wait "
        "for other ranks: start at most 10 ranks on it.");
    REQUIRE(has(refusal(device, {1, 32}, false, false), ": it is too small for any rank."));
    REQUIRE(refusal(device, large, false, false).empty());
    device.ranks.resize(max_peers);
    REQUIRE(refusal(device, {~0u, ~0u}, false, false).empty());  // a CPU
}

// NVIDIA's MPS listens at a socket of this kind, and Linux refuses whoever connects with another.
TEST_CASE("MPS is there if somebody listens in its folder") {
    const TemporaryFolder folder;
    const std::string control = folder / "control";
    REQUIRE_FALSE(has_mps((folder / "").string()));
    sockaddr_un address{AF_UNIX, {}};
    control.copy(address.sun_path, sizeof address.sun_path - 1);
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    REQUIRE(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE_FALSE(has_mps((folder / "").string()));
    REQUIRE(listen(listener, 1) == 0);
    REQUIRE(has_mps((folder / "").string()));
    close(listener);
    REQUIRE_FALSE(has_mps((folder / "").string()));  // what it left behind
}

}  // namespace
}  // namespace ddp::test
