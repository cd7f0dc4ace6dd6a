#include "common/report/bench.hpp"

#include <stdexcept>
#include <string>
#include <thread>

#include "tests/support/catch.hpp"

namespace ddp::test {

TEST_CASE("variants run in turn, and each round starts with the next", "[report][bench]") {
    std::string order;
    int calls = 0;
    std::vector<Measurement> variants;
    for (const char name : {'a', 'b', 'c'})
        variants.push_back([&, name] {
            order += name;
            return 100 * (name - 'a') + calls++;
        });
    const auto samples = interleave(variants, 2, 3);
    CHECK(order ==
          "abc"
          "bca"
          "cab"
          "abc"
          "bca");
    REQUIRE(samples.size() == 3);
    CHECK(samples[0] == std::vector<double>{7, 9, 14});
    CHECK(samples[1] == std::vector<double>{108, 110, 112});
    CHECK(samples[2] == std::vector<double>{206, 211, 213});
}

TEST_CASE("nothing to run is refused", "[report][bench]") {
    const std::vector<Measurement> none, one = {[] { return 1.0; }};
    CHECK_THROWS_AS(interleave(none, 0, 1), std::invalid_argument);
    CHECK_THROWS_AS(interleave(one, 0, 0), std::invalid_argument);
    CHECK_THROWS_AS(interleave(one, -1, 1), std::invalid_argument);
}

TEST_CASE("the stopwatch measures seconds", "[report][bench]") {
    const Measurement nap =
        timed([] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
    const double seconds = nap();
    CHECK(seconds >= 0.020);
    CHECK(seconds < 10);
    Stopwatch stopwatch;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const double before = stopwatch.seconds();
    stopwatch.restart();
    CHECK(stopwatch.seconds() < before);
}

}  // namespace ddp::test
