#include "common/report/stats.hpp"

#include <stdexcept>
#include <vector>

#include "tests/common/report/thrown.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {

TEST_CASE("quantiles interpolate between sorted neighbours", "[report][stats]") {
    const std::vector<double> odd = {9, 1, 5};
    const std::vector<double> even = {8, 2, 4, 1};
    CHECK(median(odd) == 5);
    CHECK(median(even) == 3);
    CHECK(quantile(even, 0) == 1);
    CHECK(quantile(even, 1) == 8);
    CHECK(quantile(even, 0.25) == Approx(1.75));
    CHECK(median(std::vector<double>{7}) == 7);
    CHECK(even == std::vector<double>{8, 2, 4, 1});
    std::vector<double> hundred_and_one;
    for (int i = 100; i >= 0; i--)
        hundred_and_one.push_back(i);
    CHECK(quantile(hundred_and_one, 0.99) == Approx(99));
}

TEST_CASE("spread is the interquartile range over the median", "[report][stats]") {
    CHECK(spread(std::vector<double>{1, 2, 3, 4, 5}) == Approx(2.0 / 3));
    CHECK(spread(std::vector<double>{0, 0, 0}) == 0);
    CHECK(spread(std::vector<double>{4}) == 0);
}

TEST_CASE("ratios are paired by round", "[report][stats]") {
    // One slow round strikes both: the ratio of the medians would be the same, that of the pairs is
    // exact.
    const std::vector<double> a = {2, 20, 4, 6}, b = {1, 10, 2, 2};
    CHECK(median_ratio(a, b) == 2);
    CHECK(median_ratio(b, a) == 0.5);
    CHECK(thrown<std::invalid_argument>([&] { median_ratio(a, std::vector<double>{1}); }) ==
          "Ratios need pairs, but there are 4 and 1 samples: measure both in every round.");
}

TEST_CASE("statistics of nothing are refused", "[report][stats]") {
    const std::vector<double> none, one = {1};
    CHECK(thrown<std::invalid_argument>([&] { median(none); }) ==
          "A quantile needs at least one sample: measure first.");
    CHECK_THROWS_AS(spread(none), std::invalid_argument);
    CHECK_THROWS_AS(quantile(one, 1.5), std::invalid_argument);
    CHECK_THROWS_AS(quantile(one, -0.1), std::invalid_argument);
}

}  // namespace ddp::test
