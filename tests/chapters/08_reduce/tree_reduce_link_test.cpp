// Over a simulated link a reduction takes as long as its formula predicts.
#include <cmath>

#include "08_reduce/tree_reduce.hpp"
#include "common/report/bench.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {

TEST_CASE("on a simulated link a reduction takes log2(N) times as long as one message") {
    constexpr std::size_t bytes = 200'000;
    const CostModel link{0.002, 1 / 5e6};
    const auto is_near = [](double measured, double predicted) {
        return std::abs(measured / predicted - 1) < 0.25;
    };
    for (int ranks : {2, 3, 4, 5, 8}) {
        CommonOptions options = thread_options(ranks);
        options.link = LinkSpeed{1 / link.beta_s_per_byte, link.alpha_s};
        World world(options);
        const double predicted = tree_reduce_seconds(link, ranks, bytes);
        double measured = 0;
        world.run([&](Rank& rank) {
            Peers peers(rank, 1 << 20);
            Stream stream;
            ArenaBuffer<float> data = peers.allocate<float>(bytes / sizeof(float));
            try_until_good(rank, [&] {
                rank.barrier();
                const Stopwatch watch;
                tree_reduce(peers, static_cast<const float*>(data.data()), data.data(), data.size(),
                            ReduceOp::sum, 1, stream);
                peers.synchronize(stream);
                rank.barrier();
                const double seconds = watch.seconds();
                if (rank.rank() == 0)
                    measured = seconds;
                return is_near(seconds, predicted);
            });
        });
        CAPTURE(ranks, measured, predicted);
        REQUIRE(is_near(measured, predicted));
    }
}

TEST_CASE("a reduction's steps and slices, computed by hand") {
    const CostModel link{0.001, 1 / 5e6};
    REQUIRE(tree_reduce_seconds(link, 1, 200'000) == 0);
    REQUIRE(tree_reduce_seconds(link, 8, 1000) == Approx(3 * 0.0012));
    REQUIRE(tree_reduce_seconds(link, 9, 1000) == Approx(4 * 0.0012));
    REQUIRE(tree_reduce_seconds(link, 2, 5'000'000) > 1.001);  // more than one slice
}

}  // namespace ddp::test
