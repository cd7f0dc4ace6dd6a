#include "common/data/images.hpp"

#include "tests/common/data/files.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {

TEST_CASE("image i is the i-th piece of the pixels") {
    const LabelledImages images{2, 3, 5, counting(4 * 30), {0, 1, 2, 3}};
    CHECK(images.count() == 4);
    REQUIRE(images.image(3).size() == 30);
    CHECK(images.image(3)[0] == 90);
    CHECK(images.image(3)[29] == 119);
}

TEST_CASE("normalise maps every byte to (x / 255 - mean) / std") {
    Bytes pixels(256);
    for (std::size_t i = 0; i < pixels.size(); i++)
        pixels[i] = static_cast<std::uint8_t>(i);
    std::vector<float> plain(256), shifted(256);
    normalise(pixels, {}, plain);
    normalise(pixels, {0.25f, 0.5f}, shifted);
    CHECK(plain[0] == 0.0f);
    CHECK(plain[255] == 1.0f);
    for (std::size_t i = 0; i < pixels.size(); i++) {
        CHECK(plain[i] == static_cast<float>(i) / 255.0f);
        CHECK(shifted[i] == Approx((i / 255.0 - 0.25) / 0.5).margin(1e-6));
    }
}

TEST_CASE("normalise refuses sizes that differ") {
    const Bytes pixels(3);
    std::vector<float> out(4);
    CHECK_THROWS_WITH(
        normalise(pixels, {}, out),
        "normalise got 3 pixels and room for 4 floats: give it room for one float per "
        "pixel.");
}

}  // namespace ddp::test
