// Ranks on a GPU of 20 multiprocessors and 4 GiB, which the CPU plays.
#include <atomic>

#include "06_messages/peers.hpp"
#include "06_messages/support/copy.cuh"
#include "tests/chapters/06_messages/neighbours.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

TEST_CASE("a rank's kernels leave room for those of all others") {
    REQUIRE(blocks_of_rank(1) == 10);
    REQUIRE(blocks_of_rank(4) == 2);
    REQUIRE(blocks_of_rank(10) == 1);
    REQUIRE(shape_of_copy(1 << 20, 1).grid.x == 3);  // as CUDA_ON_CPU says
    REQUIRE(shape_of_copy(1 << 20, 4).grid.x == 2);
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
}

}  // namespace
}  // namespace ddp::test
