// A sharded step: the halves of an all-reduce, each stage by hand, and when stage 3 costs nothing.
#include <stdexcept>

#include "21_cluster/simulated_sharded.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using namespace simulator;

double bytes_of(const Schedule& schedule, int ranks) {
    double bytes = 0;
    for (const Rounds& rounds : schedule.parts)
        for (const Round& round : rounds)
            for (int rank = 0; rank < ranks; rank++)
                bytes += round.partner(rank) < 0 ? 0 : schedule.slices * round.bytes;
    return bytes * schedule.copies;
}

// Collectives that take a second for each byte of theirs, whatever the number of ranks.
Halves as_long_as_bytes() {
    const Seconds seconds = [](double bytes) { return bytes; };
    return {seconds, seconds};
}

// Returns a model of equal blocks: forward 2 s, backward 4 s.
ShardedStep equal_blocks(int blocks, double bytes, double optimizer_s = 0) {
    return {std::vector<Block>(static_cast<std::size_t>(blocks), {2, 4, bytes}), optimizer_s};
}

}  // namespace

TEST_CASE("simulator: each half of an all-reduce sends K (N - 1) / N bytes for each rank") {
    const Link link = straight_link(1e-6, 1e9);
    for (const Algorithm algorithm : {Algorithm::flat, Algorithm::two_level})
        for (const auto& [nodes, local] : {std::pair{1, 4}, {3, 2}, {4, 4}}) {
            const Cluster cluster{nodes, local, link, link, 1};
            const int ranks = cluster.ranks();
            CAPTURE(static_cast<int>(algorithm), nodes, local);
            for (const Half half : {Half::reduce_scatter, Half::all_gather}) {
                const Schedule rounds = half_schedule(algorithm, cluster, 5e6, half);
                REQUIRE(bytes_of(rounds, ranks) == Approx(ranks * bytes_sent(2, ranks, 5e6) / 2));
            }
        }
    const Cluster cluster{2, 2, link, link};
    REQUIRE_THROWS_AS(half_schedule(Algorithm::tree, cluster, 1, Half::all_gather),
                      std::invalid_argument);
}

TEST_CASE("simulator: half a ring by hand") {
    const Cluster cluster{4, 1, straight_link(0, 1), straight_link(1, 10)};
    for (const Half half : {Half::reduce_scatter, Half::all_gather})
        REQUIRE(half_s(Algorithm::flat, cluster, 7, half) == Approx(3 * (1 + 7 / 4.0 / 10)));
}

TEST_CASE("simulator: what a rank sends in a step of each stage") {
    for (const int stage : {0, 1, 2})
        REQUIRE(bytes_sent(stage, 4, 100) == Approx(150));
    REQUIRE(bytes_sent(3, 4, 100) == Approx(225));
    REQUIRE(bytes_sent(3, 1, 100) == 0);
}

TEST_CASE("simulator: stages by hand, two blocks on four ranks") {
    // Forward to 4 s, backward of block 1 to 8 s and of block 0 to 12 s; each half takes 1 s.
    const ShardedStep step = equal_blocks(2, 1, 8);
    const Halves halves = as_long_as_bytes();
    // The last all-reduce is exposed, and the optimizer updates everything.
    REQUIRE(sharded_step_s(step, 0, 4, halves) == Approx(12 + 2 + 8));
    // Half of that is exposed; then each rank updates a quarter, and both blocks are gathered.
    REQUIRE(sharded_step_s(step, 1, 4, halves) == Approx(12 + 1 + 2 + 2));
    REQUIRE(sharded_step_s(step, 2, 4, halves) == Approx(12 + 1 + 2 + 2));
    // The first gather and the last reduce-scatter are exposed.
    REQUIRE(sharded_step_s(step, 3, 4, halves) == Approx(1 + 12 + 1 + 2));
    // Without prefetch the second gather is, too. Both blocks stay for backward.
    REQUIRE(sharded_step_s(step, 3, 4, halves, false) == Approx(2 + 12 + 1 + 2));
    // Of three blocks the first is gathered again for backward, behind the reduction of the last.
    REQUIRE(sharded_step_s(equal_blocks(3, 1), 3, 4, halves, false) == Approx(3 + 18 + 1 + 1 + 1));
    for (const int stage : {0, 1, 2, 3})  // one rank that sends nothing
        REQUIRE(sharded_step_s(step, stage, 1,
                               {[](double) { return 0; }, [](double) { return 0; }}) == Approx(20));
}

TEST_CASE("simulator: a gather waits until a block is released") {
    // Three blocks whose gathers take 5 s. The third may begin when the first block is released, at
    // 7 s: but the network is busy until 10 s.
    //     gathers    0 - 5 - 10 - 15
    //     forward          5-7  10-12  15-17
    // Backward of block 2 from 17 to 21 s; its reduce-scatter, 21 to 26; the gather of block 0, for
    // which block 2 is released at 21 s, 26 to 31. Backward of block 1 from 21 to 25 s, of block 0
    // from 31 to 35 s. The reduce-scatters of 1 and 0: 31 to 36 and 36 to 41 s.
    REQUIRE(sharded_step_s(equal_blocks(3, 5), 3, 4, as_long_as_bytes()) == Approx(41));
    // With short ones, the gather of block 2 begins when block 0 is released, and not before.
    const ShardedStep small_first{{{10, 1, 0.5}, {1, 1, 0.5}, {1, 1, 4}}, 0};
    // gather 0: 0.5 s, 1: 1 s; forward 0 to 10.5 s; gather 2 from there to 14.5 s; forward 2 to
    // 15.5 s, backward 2 to 16.5 s; 1, which is still there, to 17.5 s. Reduce-scatter of 2:
    // 16.5 to 20.5 s; gather 0: to 21 s; backward 0: to 22 s; reduce-scatters of 1 (21 to 21.5 s)
    // and 0 (22 to 22.5 s).
    REQUIRE(sharded_step_s(small_first, 3, 4, as_long_as_bytes()) == Approx(22.5));
}

TEST_CASE("simulator: stage 3 is free from so many operations a gathered byte on") {
    // 10^12 operations and 10^9 bytes a second, parameters of 4 bytes, 8 ranks: 875 operations.
    constexpr int ranks = 8;
    constexpr double operations_per_s = 1e12, bytes_per_s = 1e9, parameters = 1e6;
    const double needed = operations_to_hide_byte(operations_per_s, bytes_per_s, ranks);
    REQUIRE(needed == Approx(875));
    REQUIRE(operations_per_byte(1750, 4) == Approx(875));
    REQUIRE(operations_per_byte(1750, 2) == Approx(1750));
    const Seconds half_ring = [&](double bytes) {
        return bytes * (ranks - 1) / ranks / bytes_per_s;
    };
    const auto exposed_s = [&](double tokens) {
        const double forward_s = 2 * parameters * tokens / operations_per_s;
        const ShardedStep step{std::vector<Block>(20, {forward_s, 2 * forward_s, 4 * parameters}),
                               0};
        return sharded_step_s(step, 3, ranks, {half_ring, half_ring}) - 20 * 3 * forward_s;
    };
    // The first gather and the last reduce-scatter are always exposed, and nothing else from there.
    const double ends_s = 2 * half_ring(4 * parameters);
    REQUIRE(exposed_s(1750) == Approx(ends_s));
    REQUIRE(exposed_s(4000) == Approx(ends_s));
    REQUIRE(exposed_s(1500) > 2 * ends_s);
}

TEST_CASE("simulator: on many nodes the third half costs what the slowest link takes") {
    const Link inside = straight_link(2e-6, 370e9), between = straight_link(14e-6, 48e9);
    for (const int nodes : {4, 64}) {
        const Cluster cluster{nodes, 8, inside, between, 8};
        CAPTURE(nodes);
        const double bytes = 25 << 20;
        const double gather_s = half_s(Algorithm::two_level, cluster, bytes, Half::all_gather);
        const double scatter_s = half_s(Algorithm::two_level, cluster, bytes, Half::reduce_scatter);
        const double all_s = all_reduce_s(Algorithm::two_level, cluster, bytes);
        // The slices of two calls do not overlap those of the other, so they take a little longer.
        REQUIRE(gather_s + scatter_s >= all_s * 0.999);
        REQUIRE(gather_s + scatter_s < all_s * 1.3);
    }
}

}  // namespace ddp::test
