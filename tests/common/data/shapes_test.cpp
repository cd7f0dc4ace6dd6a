#include "common/data/shapes.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "common/data/file.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

double mean(std::span<const std::uint8_t> pixels) {
    return std::accumulate(pixels.begin(), pixels.end(), 0.0) / static_cast<double>(pixels.size());
}

}  // namespace

TEST_CASE("shapes come as cat, dog, car, cat ... of 32 x 32") {
    const LabelledImages shapes = make_shapes(7, 1);
    CHECK(shapes.labels == std::vector<std::uint8_t>{0, 1, 2, 0, 1, 2, 0});
    CHECK(shapes.image_size() == 32 * 32);
    CHECK(shapes.pixels.size() == 7 * 32 * 32);
    CHECK(make_shapes(0, 1).count() == 0);
}

TEST_CASE("the same seed draws the same bits everywhere, another seed other pictures") {
    CHECK(checksum(make_shapes(99, 5).pixels) == 0xb11cd65f);
    CHECK(make_shapes(3, 5).pixels != make_shapes(3, 6).pixels);
    const auto some = make_shapes(10, 5), more = make_shapes(20, 5);
    CHECK(std::equal(some.pixels.begin(), some.pixels.end(), more.pixels.begin()));
}

TEST_CASE("the classes differ in brightness: no dog is as dark as a cat or as bright as a car") {
    const LabelledImages shapes = make_shapes(3000, 1);
    std::array<double, 3> low = {255, 255, 255}, high = {0, 0, 0};
    for (std::size_t i = 0; i < shapes.count(); i++) {
        const double brightness = mean(shapes.image(i));
        low[i % 3] = std::min(low[i % 3], brightness);
        high[i % 3] = std::max(high[i % 3], brightness);
    }
    CHECK(high[0] < low[1]);
    CHECK(high[1] + 40 < low[2]);
    CHECK(high[0] - low[0] > 20);  // but each class varies
    CHECK(high[1] - low[1] > 20);
    CHECK(high[2] - low[2] > 20);
}

}  // namespace ddp::test
