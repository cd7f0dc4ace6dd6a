// Ranks on a GPU that drives a display, whose driver ends kernels after two seconds.
#include "06_messages/peers.hpp"
#include "06_messages/support/shared_device.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

TEST_CASE("a wait ends in the book's sentence before the driver ends the kernel") {
    REQUIRE(longest_wait_s(1) == 1);
    REQUIRE(longest_wait_s(0) == 1.5);
    World world(thread_options(2));  // 30 s
    const std::string cause = failure_of(world, [](Rank& rank) {
        Peers peers(rank, 1 << 16);
        Stream stream;
        ArenaBuffer<int> data = peers.allocate<int>(1);
        if (rank.rank() == 0) {
            peers.receive(data.data(), 1, 1, stream);
            peers.synchronize(stream);
        } else {
            wait_for_failure(rank);
        }
    });
    CAPTURE(cause);
    REQUIRE(has(cause, "waited 1.5 s in operation 1, receive of 1 int from rank 1"));
}

}  // namespace
}  // namespace ddp::test
