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

TEST_CASE("no two pictures of a class are the same") {
    const LabelledImages shapes = make_shapes(300, 8);
    for (std::size_t i = 3; i < shapes.count(); i++)
        CHECK(!std::equal(shapes.image(i).begin(), shapes.image(i).end(),
                          shapes.image(i - 3).begin()));
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

TEST_CASE("something is drawn: every picture has darkest and brightest spots of its class") {
    const LabelledImages shapes = make_shapes(300, 4);
    for (std::size_t i = 0; i < shapes.count(); i++) {
        const auto [dark, bright] =
            std::minmax_element(shapes.image(i).begin(), shapes.image(i).end());
        CHECK(*dark < 40);                                  // pupils, nose, tyres
        CHECK(*bright > std::array{150, 160, 215}[i % 3]);  // eyes, snout, windows
    }
}

TEST_CASE("a car stands on two dark wheels") {
    const LabelledImages shapes = make_shapes(300, 4);
    for (std::size_t i = 2; i < shapes.count(); i += 3) {
        const auto car = shapes.image(i);
        int most_wheels = 0;  // runs of dark pixels in a row, each two pixels long or more
        for (std::size_t row = 0; row < 32; row++) {
            int wheels = 0, run = 0;
            for (std::size_t column = 0; column < 32; column++) {
                run = car[row * 32 + column] < 70 ? run + 1 : 0;
                wheels += run == 2;
            }
            most_wheels = std::max(most_wheels, wheels);
        }
        CHECK(most_wheels >= 2);
    }
}

}  // namespace ddp::test
