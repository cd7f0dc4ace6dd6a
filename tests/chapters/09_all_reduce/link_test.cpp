// Over a simulated link every all-reduce takes as long as its formula predicts.
#include <atomic>
#include <cmath>

#include "09_all_reduce/cost.hpp"
#include "09_all_reduce/support/algorithms.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

constexpr LinkSpeed link{10e6, 0.002};  // 10 MB/s, 2 ms

struct Measured {
    std::string algorithm;
    double predicted = 0, measured = INFINITY;
};

bool is_near(const Measured& result) {
    return std::abs(result.measured / result.predicted - 1) < 0.25;
}

// Returns every algorithm's time on rank 0. Repeats each measurement until is_good().
std::vector<Measured> measured(int ranks, std::size_t count, bool (*is_good)(const Measured&)) {
    World world(thread_options(ranks));
    std::vector<Measured> all;
    world.run([&](Rank& rank) {
        Peers peers(rank, 2 << 20, {}, link);
        AllReduceData data(peers, count);
        for (const AllReduceAlgorithm<float>& algorithm :
             all_reduce_algorithms<float>(peers, count)) {
            const CostModel message{link.latency_s, 1 / link.bytes_per_second};
            Measured result{algorithm.name,
                            algorithm.predicted_seconds(message, ranks, count * sizeof(float))};
            try_until_good(rank, [&] {
                result.measured = seconds_of_one(peers, algorithm, data, count);
                return is_good(result);
            });
            if (rank.rank() == 0)
                all.push_back(result);
        }
    });
    return all;
}

}  // namespace

TEST_CASE("on a simulated link an all-reduce takes the predicted time, within 25 %") {
    for (int ranks : {2, 3, 4, 5, 8}) {
        const std::vector<Measured> all = measured(ranks, 40'000, is_near);
        REQUIRE(all.size() == std::size(all_reduces));
        for (const Measured& result : all) {
            CAPTURE(ranks, result.algorithm, result.measured);
            CAPTURE(result.predicted);
            REQUIRE(is_near(result));
        }
    }
}

TEST_CASE("empty chunks take no time on the link") {
    // With one element, one rank sums it and sends it to all others.
    const auto takes_no_longer = [](const Measured& result) {
        return result.measured <= result.predicted * 1.25;
    };
    for (const Measured& result : measured(4, 1, takes_no_longer)) {
        CAPTURE(result.algorithm, result.measured, result.predicted);
        REQUIRE(result.measured >= 0.99 * std::min(2 * link.latency_s, result.predicted));
        REQUIRE(takes_no_longer(result));
    }
}

TEST_CASE("predictions computed by hand") {
    const CostModel link{0.5, 0.001};  // seconds, and seconds for a byte
    REQUIRE(parameter_server_seconds(link, 4, 1000) == Approx(2 * 3 * 1.5));
    REQUIRE(reduce_broadcast_seconds(link, 4, 1000) == Approx(2 * 2 * 1.5));
    REQUIRE(reduce_broadcast_seconds(link, 5, 1000) == Approx(2 * 3 * 1.5));
    REQUIRE(ring_seconds(link, 4, 1000) == Approx(6 * 0.75));
    REQUIRE(two_shot_seconds(link, 4, 1000) == Approx(2 * 0.5 + 1.5));
    REQUIRE(one_shot_seconds(link, 4, 1000) == Approx(0.5 + 3));
    for (const ListedAllReduce& listed : all_reduces)
        REQUIRE(listed.predicted_seconds(link, 1, 1000) == 0);
    // What the chapter is about: bytes on the critical path, 2 K (N - 1) and 2 K (N - 1) / N.
    REQUIRE(parameter_server_seconds({0, 1}, 8, 8000) == 2 * 8000 * 7);
    REQUIRE(ring_seconds({0, 1}, 8, 8000) == 2 * 8000 * 7 / 8);
    REQUIRE(bus_bandwidth(8, 8000, 2) == 7000);
    REQUIRE(std::isnan(bus_bandwidth(1, 8000, 2)));
}

TEST_CASE("cross-overs computed by hand: where two formulas are equal") {
    const CostModel message{1e-3, 1e-8};  // 1 ms, 100 MB/s
    // 4 ranks: alpha + 3 K beta = 2 alpha + 1.5 K beta, so K = alpha / (1.5 beta).
    REQUIRE(predicted_cross_over(one_shot_seconds, two_shot_seconds, message, 4) ==
            Approx(1e5 / 1.5).margin(1));
    // 8 ranks: 14 (alpha + K / 8 beta) = 2 alpha + 1.75 K beta never: the same bytes, more
    // messages.
    REQUIRE(std::isinf(predicted_cross_over(two_shot_seconds, ring_seconds, message, 8)));
    REQUIRE(predicted_cross_over(ring_seconds, two_shot_seconds, message, 8) == 0);
    // 2 ranks: the ring's two messages are half as long as the tree's two.
    REQUIRE(predicted_cross_over(reduce_broadcast_seconds, ring_seconds, message, 2) == 0);
    REQUIRE(std::isinf(predicted_cross_over(one_shot_seconds, two_shot_seconds, message, 2)));
}

TEST_CASE("measured cross-overs lie between two sizes, or beyond them") {
    // Behind by a factor of 4, then ahead by 2: two thirds of the way from 1000 to 8000.
    const std::vector<CrossOverPair> once{{1000, 1, 4}, {8000, 4, 2}, {64'000, 9, 3}};
    REQUIRE(measured_cross_over(once) == Approx(1000 * std::pow(8, 2.0 / 3)));
    // Ahead by chance at first: the cross-over is where it stays ahead.
    const std::vector<CrossOverPair> twice{{500, 3, 2}, {1000, 1, 2}, {4000, 4, 2}};
    REQUIRE(measured_cross_over(twice) == Approx(2000));
    const std::vector<CrossOverPair> always{{500, 3, 2}, {1000, 2, 2}},
        never{{500, 3, 2}, {1000, 2, 3}};
    REQUIRE(measured_cross_over(always) == 0);
    REQUIRE(std::isinf(measured_cross_over(never)));
}

}  // namespace ddp::test
