// A step with overlap and stragglers, and what failures cost.
#include <cmath>

#include "21_cluster/failures.hpp"
#include "21_cluster/simulated_training.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {

using namespace simulator;

TEST_CASE("simulator: eight layers of 3 ms, as the overlap chapter predicts them") {
    const Step step{0, std::vector<Bucket>(8, {0.003, 1}), 0};
    const Seconds three_ms = [](double) { return 0.003; };
    REQUIRE(step_s(step, three_ms, true) == Approx(0.027));
    REQUIRE(step_s(step, three_ms, false) == Approx(0.048));
}

TEST_CASE(
    "simulator: the slowest rank delays every all-reduce, and the optimizer waits for the last") {
    // Forward 1, backward 2 and 4, all-reduces of 10 and 1 s, optimizer 3.
    const Step step{1, {{2, 10}, {4, 1}}, 3};
    const Seconds as_long_as_bytes = [](double bytes) { return bytes; };
    REQUIRE(step.compute_s() == 10);
    REQUIRE(step_s(step, as_long_as_bytes, true) == Approx(3 + 10 + 1 + 3));
    REQUIRE(step_s(step, as_long_as_bytes, false) == Approx(7 + 10 + 1 + 3));
    REQUIRE(step_s(step, as_long_as_bytes, true, 2) == Approx(6 + 10 + 1 + 6));
    const Seconds nothing = [](double) { return 0; };
    REQUIRE(step_s(step, nothing, true, 3) == Approx(30));
}

TEST_CASE("simulator: the largest of N exponential delays is 1 + 1/2 + ... + 1/N on average") {
    const Step step{1, {}, 0};
    const Seconds nothing = [](double) { return 0; };
    for (const int ranks : {1, 8, 4096}) {
        CAPTURE(ranks);
        double mean = 0;
        for (int k = 1; k <= ranks; k++)
            mean += 1.0 / k;
        REQUIRE(jittery_step_s(step, nothing, true, ranks, 0.5, 20'000) ==
                Approx(1 + 0.5 * mean).epsilon(0.02));
    }
}

TEST_CASE(
    "simulator: the largest of N even delays is 2 N / (N + 1) on average, and never above 2") {
    const Step step{1, {}, 0};
    const Seconds nothing = [](double) { return 0; };
    for (const int ranks : {1, 8, 4096}) {
        CAPTURE(ranks);
        const double mean = 2.0 * ranks / (ranks + 1);
        REQUIRE(jittery_step_s(step, nothing, true, ranks, 0.5, 20'000, Delays::even) ==
                Approx(1 + 0.5 * mean).epsilon(0.02));
    }
}

TEST_CASE("simulator: how often to save") {
    const Failures failures{10'000, 50, 300};
    // sqrt(2 d M) (1 + sqrt(d / 2M) / 3 + d / 2M / 9) - d
    REQUIRE(best_interval_s(failures) == Approx(1000 * (1 + 0.05 / 3 + 0.0025 / 9) - 50));
    REQUIRE(best_interval_s({10, 50, 0}) == 10);
    const double best = useful_share(failures, best_interval_s(failures));
    for (const double factor : {0.5, 0.8, 1.25, 2.0})
        REQUIRE(useful_share(failures, factor * best_interval_s(failures)) < best);
}

TEST_CASE("simulator: simulated failures cost what the formula says") {
    for (const Failures& failures :
         {Failures{10'000, 50, 300}, Failures{2000, 100, 0}, Failures{1000, 200, 400}})
        for (const double factor : {0.5, 1.0, 3.0}) {
            const double interval_s = factor * best_interval_s(failures);
            CAPTURE(failures.mean_s, interval_s);
            REQUIRE(simulated_useful_share(failures, interval_s, 100'000) ==
                    Approx(useful_share(failures, interval_s)).epsilon(0.02));
        }
    // No checkpoint is ever whole: nothing counts.
    REQUIRE(simulated_useful_share({10, 1000, 0}, 1000, 100) == 0);
}

}  // namespace ddp::test
