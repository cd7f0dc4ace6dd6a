#include "common/data/random.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/catch.hpp"

namespace ddp::test {

TEST_CASE("a seed gives the same numbers everywhere") {
    Random random(42);
    const std::vector<std::size_t> whole = {random.below(1000), random.below(1000)};
    const std::vector<float> real = {random.uniform(0, 1), random.uniform(-2, 2), random.normal()};
    CHECK(whole == std::vector<std::size_t>{826, 466});
    CHECK(real == std::vector<float>{0x1.725488p-2f, 0x1.051f3p+0f, 0x1.1b6b24p+1f});
}

TEST_CASE("every bit of the seed counts") {
    const auto first = [](std::uint64_t seed) { return Random(seed).below(std::size_t{1} << 32); };
    std::vector<std::size_t> firsts = {first(0)};
    for (int bit = 0; bit < 64; bit++)
        firsts.push_back(first(std::uint64_t{1} << bit));
    std::sort(firsts.begin(), firsts.end());
    CHECK(std::adjacent_find(firsts.begin(), firsts.end()) == firsts.end());
}

TEST_CASE("below(n) reaches 0 to n - 1, equally often") {
    Random random(1);
    std::vector<int> counts(7);
    for (int i = 0; i < 70000; i++)
        counts.at(random.below(7))++;
    for (const int count : counts)
        CHECK(std::abs(count - 10000) < 400);  // four standard deviations
    CHECK(random.below(1) == 0);
}

TEST_CASE("uniform numbers fill their range, normal numbers have mean 0 and deviation 1") {
    Random random(2);
    float low = 9, high = -9;
    double sum = 0, squares = 0;
    int within_one = 0;
    for (int i = 0; i < 100000; i++) {
        const float u = random.uniform(-3, 5), z = random.normal();
        low = std::min(low, u);
        high = std::max(high, u);
        sum += z;
        squares += z * z;
        within_one += std::abs(z) < 1;
    }
    CHECK((low >= -3 && low < -2.99f));
    CHECK((high <= 5 && high > 4.99f));
    CHECK(std::abs(sum / 100000) < 0.013);
    CHECK(squares / 100000 == Approx(1).epsilon(0.02));
    CHECK(within_one / 100000.0 == Approx(0.6827).margin(0.01));
}

}  // namespace ddp::test
