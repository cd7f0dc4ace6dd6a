// The same numbers in several orders.
#include "02_kernels/support/sum_orders.hpp"

#include <numeric>

#include "tests/support/catch.hpp"

namespace ddp::test {

TEST_CASE("sum orders: each loses what its own order loses") {
    const float big = 0x1p24f;  // big + 1 is rounded to big; big - 1 is exact
    const std::vector<float> values{big, 1, -big, 1};
    REQUIRE(sum_forward(values) == 1);
    REQUIRE(sum_backward(values) == 2);
    REQUIRE(sum_of_neighbours(values) == 1);
    REQUIRE(sum_of_halves(values) == 2);
    REQUIRE(sum_in_double(values) == 2);
    REQUIRE(sum_of_neighbours({big, 1, 1, 1}) == big + 2);
    REQUIRE(sum_forward(std::vector<float>{big, 1, 1, 1}) == big);
}

TEST_CASE("sum orders: every element counts once, whatever their number") {
    for (std::size_t n = 0; n <= 70; n++) {
        std::vector<float> values(n);
        for (std::size_t i = 0; i < n; i++)
            values[i] = static_cast<float>(i * i + 1);
        const float sum = std::accumulate(values.begin(), values.end(), 0.0f);  // exact
        CAPTURE(n);
        REQUIRE(sum_forward(values) == sum);
        REQUIRE(sum_backward(values) == sum);
        REQUIRE(sum_of_neighbours(values) == sum);
        REQUIRE(sum_of_halves(values) == sum);
        REQUIRE(sum_in_double(values) == sum);
    }
}

TEST_CASE("sum orders: errors are counted in units of the last place") {
    REQUIRE(error_in_last_places(1.0f, 1.0) == 0);
    REQUIRE(error_in_last_places(1.0f + 0x1p-23f, 1.0) == 1);
    REQUIRE(error_in_last_places(1.0f, 1.0 + 0x1p-24) == -0.5);
    REQUIRE(error_in_last_places(-3.0f, -3.0 - 0x1p-22) == 1);
    REQUIRE(error_in_last_places(0x1p20f + 1, 0x1p20) == 8);
}

}  // namespace ddp::test
