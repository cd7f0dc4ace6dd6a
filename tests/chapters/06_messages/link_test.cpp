// Over a simulated link a message takes as long as the link's speed and latency demand.
#include <cmath>

#include "06_messages/peers.hpp"
#include "06_messages/point_to_point.hpp"
#include "common/report/bench.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

bool is_near(double measured, double predicted) {
    return std::abs(measured / predicted - 1) < 0.25;
}

World world_with_link(int ranks, LinkSpeed link) {
    CommonOptions options = thread_options(ranks);
    options.link = link;
    return World(options);
}

// Measures how long rank 0 takes to send `bytes` to rank 1, or to all others, until the last one
// has them. Repeats until the time is near the prediction.
double seconds_of_sends(int ranks, LinkSpeed link, std::size_t bytes, bool to_all,
                        double predicted) {
    World world = world_with_link(ranks, link);
    double seconds = 0;
    world.run([&](Rank& rank) {
        Peers peers(rank, 4 << 20);
        Stream stream;
        ArenaBuffer<unsigned char> data = peers.allocate<unsigned char>(bytes);
        try_until_good(rank, [&] {
            rank.barrier();
            const Stopwatch watch;
            if (rank.rank() == 0)
                for (int r = 1; r < (to_all ? ranks : 2); r++)
                    peers.send(data.data(), bytes, r, stream);
            else if (rank.rank() == 1 || to_all)
                peers.receive(data.data(), bytes, 0, stream);
            peers.synchronize(stream);
            rank.barrier();
            const double mine = watch.seconds();
            if (rank.rank() == 0)
                seconds = mine;
            return is_near(mine, predicted);
        });
    });
    return seconds;
}

}  // namespace

TEST_CASE("ping-pong over a simulated link costs what the link says") {
    const LinkSpeed link{1e6, 0.005};
    World world = world_with_link(3, link);
    for (const std::size_t bytes : {1, 20'000}) {
        const double predicted =
            link.latency_s + static_cast<double>(bytes) / link.bytes_per_second;
        double seconds = 0;
        world.run([&](Rank& rank) {
            Peers peers(rank, 1 << 20);
            try_until_good(rank, [&] {
                const MessageTime time = ping_pong(peers, bytes, 3);
                if (rank.rank() == 0)
                    seconds = time.seconds;
                return is_near(time.seconds, predicted);
            });
        });
        CAPTURE(bytes, seconds, predicted);
        REQUIRE(is_near(seconds, predicted));
    }
}

TEST_CASE("a simulated link takes latency and bytes / bandwidth, one transfer after the other") {
    const LinkSpeed link{1e6, 0.02};
    const double one = seconds_of_sends(2, link, 100'000, false, 0.12);
    CAPTURE(one);
    REQUIRE(one > 0.12);
    REQUIRE(is_near(one, 0.12));
    // Each send waits until its data was read, so the latencies add up as well.
    const double three = seconds_of_sends(4, link, 50'000, true, 3 * 0.07);
    CAPTURE(three);
    REQUIRE(three > 3 * 0.07);
    REQUIRE(is_near(three, 3 * 0.07));
}

}  // namespace ddp::test
