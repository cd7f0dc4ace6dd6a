// Over a simulated link every all-reduce takes what its formula says.
#include <atomic>
#include <cmath>

#include "09_all_reduce/show/cross_over.hpp"
#include "09_all_reduce/show/times.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

constexpr LinkSpeed link{10e6, 0.002};  // 10 MB/s, 2 ms

struct Taken {
    std::string algorithm;
    double predicted = 0, measured = INFINITY;
};

bool is_near(const Taken& acknowledged) {
    return std::abs(acknowledged.measured / acknowledged.predicted - 1) < 0.25;
}

// Every way's time on rank 0; again until is_good.
std::vector<Taken> measured(int ranks, std::size_t count, bool (*is_good)(const Taken&)) {
    World world(thread_options(ranks));
    std::vector<Taken> all;
    world.run([&](Rank& rank) {
        Peers peers(rank, 2 << 20, {}, link);
        AllReduceData data(peers, count);
        for (const AllReduceAlgorithm<float>& algorithm :
             all_reduce_algorithms<float>(peers, count)) {
            const CostModel message{link.latency_s, 1 / link.bytes_per_second};
            Taken acknowledged{algorithm.name,
                               algorithm.predicted_seconds(message, ranks, count * sizeof(float))};
            try_until_good(rank, [&] {
                acknowledged.measured = seconds_of_one(peers, algorithm, data, count);
                return is_good(acknowledged);
            });
            if (rank.rank() == 0)
                all.push_back(acknowledged);
        }
    });
    return all;
}

}  // namespace

TEST_CASE("on a simulated link an all-reduce takes what was predicted, within 25 %") {
    for (int ranks : {2, 3, 4, 5, 8}) {
        const std::vector<Taken> all = measured(ranks, 40'000, is_near);
        REQUIRE(all.size() == 6);
        for (const Taken& acknowledged : all) {
            CAPTURE(ranks, acknowledged.algorithm, acknowledged.measured);
            CAPTURE(acknowledged.predicted);
            REQUIRE(is_near(acknowledged));
        }
    }
}

TEST_CASE("chunks that are empty cost nothing but their rank's patience") {
    // One element: one rank has it to sum, and sends it to all others.
    const auto takes_no_longer = [](const Taken& acknowledged) {
        return acknowledged.measured <= acknowledged.predicted * 1.25;
    };
    for (const Taken& acknowledged : measured(4, 1, takes_no_longer)) {
        CAPTURE(acknowledged.algorithm, acknowledged.measured, acknowledged.predicted);
        REQUIRE(acknowledged.measured >=
                link.latency_s * (acknowledged.algorithm == "one-shot" ? 0.99 : 1.98));
        REQUIRE(takes_no_longer(acknowledged));
    }
}

TEST_CASE("predictions by hand") {
    const CostModel link{0.5, 0.001};  // seconds, and seconds for a byte
    REQUIRE(parameter_server_seconds(link, 4, 1000) == Approx(2 * 3 * 1.5));
    REQUIRE(reduce_broadcast_seconds(link, 4, 1000) == Approx(2 * 2 * 1.5));
    REQUIRE(reduce_broadcast_seconds(link, 5, 1000) == Approx(2 * 3 * 1.5));
    REQUIRE(ring_seconds(link, 4, 1000) == Approx(6 * 0.75));
    REQUIRE(two_shot_seconds(link, 4, 1000) == Approx(2 * 0.5 + 1.5));
    REQUIRE(one_shot_seconds(link, 4, 1000) == Approx(0.5 + 3));
    for (const auto predict : {parameter_server_seconds, reduce_broadcast_seconds, ring_seconds,
                               two_shot_seconds, one_shot_seconds})
        REQUIRE(predict(link, 1, 1000) == 0);
    // What the chapter is about: bytes in a row, 2 K (N - 1) and 2 K (N - 1) / N.
    REQUIRE(parameter_server_seconds({0, 1}, 8, 8000) == 2 * 8000 * 7);
    REQUIRE(ring_seconds({0, 1}, 8, 8000) == 2 * 8000 * 7 / 8);
    REQUIRE(bus_bandwidth(8, 8000, 2) == 7000);
    REQUIRE(std::isnan(bus_bandwidth(1, 8000, 2)));
}

TEST_CASE("cross-overs by hand: where the formulas say the same") {
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

TEST_CASE("cross-overs that were measured: between two sizes, or beyond them") {
    // Behind by a factor of 4, then ahead by 2: two thirds of the way from 1000 to 8000.
    const std::vector<CrossOverPair> once{{1000, 1, 4}, {8000, 4, 2}, {64'000, 9, 3}};
    REQUIRE(measured_cross_over(once) == Approx(1000 * std::pow(8, 2.0 / 3)));
    // Ahead by chance at first: what counts is from where it stays ahead.
    const std::vector<CrossOverPair> twice{{500, 3, 2}, {1000, 1, 2}, {4000, 4, 2}};
    REQUIRE(measured_cross_over(twice) == Approx(2000));
    const std::vector<CrossOverPair> always{{500, 3, 2}, {1000, 2, 2}},
        never{{500, 3, 2}, {1000, 2, 3}};
    REQUIRE(measured_cross_over(always) == 0);
    REQUIRE(std::isinf(measured_cross_over(never)));
}

}  // namespace ddp::test
