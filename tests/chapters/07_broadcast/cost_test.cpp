// The formulas, compared with numbers that were computed by hand.
#include "07_broadcast/cost.hpp"
#include "07_broadcast/show/pace.hpp"

#include "tests/support/catch.hpp"

namespace ddp::test {

TEST_CASE("one file for seven readers") {
    const CostModel link{0, 1e-6};  // 1 MB/s
    constexpr std::size_t file = 5'000'000;
    REQUIRE(linear_seconds(link, 8, file) == Approx(35));
    REQUIRE(all_at_once_seconds(link, 8, file, 39) == Approx(35));
    REQUIRE(tree_seconds(link, 8, file) == Approx(15));
    REQUIRE(chain_seconds(link, 8, file, 1) == Approx(35));
    REQUIRE(chain_seconds(link, 8, file, 50) == Approx(5.6));
}

TEST_CASE("every message costs alpha, one after the other") {
    const CostModel message{0.5, 0.001};
    REQUIRE(linear_seconds(message, 4, 1000) == Approx(4.5));
    REQUIRE(all_at_once_seconds(message, 4, 1000, 1) == Approx(3.5));
    REQUIRE(all_at_once_seconds(message, 4, 1000, 2) == Approx(3.5));
    REQUIRE(all_at_once_seconds(message, 4, 1000, 10) ==
            Approx(9 * 0.6 + 0.8));                                         // slices too small
    REQUIRE(all_at_once_seconds(message, 2, 1000, 4) == Approx(4 * 0.75));  // one receiver
    REQUIRE(tree_seconds(message, 4, 1000) == Approx(3));
    REQUIRE(tree_seconds(message, 5, 1000) == Approx(4.5));
    REQUIRE(tree_seconds(message, 9, 1000) == Approx(6));
    REQUIRE(chain_seconds(message, 4, 1000, 5) == Approx(7 * 0.7));
    REQUIRE(chain_seconds(message, 2, 1000, 1) == Approx(1.5));
}

TEST_CASE("one rank has nothing to wait for") {
    const CostModel message{0.5, 0.001};
    for (const double seconds :
         {linear_seconds(message, 1, 1000), all_at_once_seconds(message, 1, 1000, 3),
          tree_seconds(message, 1, 1000), chain_seconds(message, 1, 1000, 4)})
        REQUIRE(seconds == 0);
}

TEST_CASE("the best number of slices is better than its neighbours") {
    const CostModel message{0.01, 1e-6};
    for (int ranks : {3, 4, 5, 8, 64}) {
        const int best = best_slices(message, ranks, 5'000'000, 10'000);
        CAPTURE(ranks, best);
        REQUIRE(best > 1);
        const double seconds = chain_seconds(message, ranks, 5'000'000, best);
        for (const int other : {best / 2, best - 1, best + 1, best * 2})
            REQUIRE(seconds <= chain_seconds(message, ranks, 5'000'000, other));
    }
    REQUIRE(best_slices(message, 8, 5'000'000, 10'000) == 55);  // sqrt(6 * 5 / 0.01)
    REQUIRE(best_slices(message, 8, 5'000'000, 20) == 20);
    REQUIRE(best_slices(message, 2, 5'000'000, 100) == 1);  // no rank passes anything on
    REQUIRE(best_slices(message, 1, 5'000'000, 100) == 1);
    REQUIRE(best_slices({0, 1e-6}, 8, 5'000'000, 100) == 100);  // slices cost nothing
    REQUIRE(best_slices({0, 1e-6}, 8, 0, 100) >= 1);
}

TEST_CASE("pace: a machine that is late says so, and why") {
    REQUIRE(pace_warning(1.2, 8, 2, 50) == "");
    const std::string late =
        "This machine does not keep up with the simulated link: a measurement is 50.0 % above its "
        "prediction. ";
    const std::string advice =
        "Run it again on an idle machine, with fewer ranks or over a slower --link.";
    REQUIRE(pace_warning(1.5, 8, 2, 3) == late + "8 ranks share 2 cores. " + advice);
    REQUIRE(pace_warning(1.5, 2, 2, 20) ==
            late + "The machine is busy with other work (load average 20.0). " + advice);
}

}  // namespace ddp::test
