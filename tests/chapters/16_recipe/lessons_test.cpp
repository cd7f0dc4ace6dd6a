// What the chapter shows: right and wrong ways to clip and drop, and who sees an overflow.
#include "16_recipe/show/small_trainings.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

LabelledImages lines(int count) {
    LabelledImages images{1, 28, 28, {}, {}};
    for (int n = 0; n < count; n++) {
        for (int p = 0; p < 784; p++)
            images.pixels.push_back(
                static_cast<std::uint8_t>(p / 28 == n % 10 * 2 ? 200 : (n * 31 + p) % 50));
        images.labels.push_back(static_cast<std::uint8_t>(n % 10));
    }
    return images;
}

}  // namespace

TEST_CASE("recipe: only the right ways are those of one device, and only one drifts") {
    const LabelledImages images = lines(211);
    const std::vector<RecipeVariant> variants = recipe_variants();
    REQUIRE(variants.size() == 6);
    for (const int ranks : {1, 3}) {
        World world(thread_options(ranks));
        for (std::size_t w = 0; w < variants.size(); w++) {
            RecipeResult found;
            world.run([&](Rank& rank) {
                const RecipeResult mine = compare_with_one_device(rank, images, variants[w], 6, 1);
                if (rank.rank() == ranks - 1)
                    found = mine;
            });
            CAPTURE(ranks, variants[w].name, found.difference);
            if (ranks == 1 || w == 0 || w == 3)
                REQUIRE(found.difference < 1e-5);
            else
                REQUIRE(found.difference > 0.05);
            REQUIRE(found.are_equal == (ranks == 1 || w != 2));
        }
    }
}

TEST_CASE("recipe: float16 loses small gradients, and the scale brings them back") {
    const std::vector<float> gradient{0, 0x1p-20f, -0x1p-26f, 1};
    REQUIRE(share_rounded_to_0(gradient, "float32", 1) == 0);
    REQUIRE(share_rounded_to_0(gradient, "bfloat16", 1) == 0);
    REQUIRE(share_rounded_to_0(gradient, "float16", 1) == 0.25);
    REQUIRE(share_rounded_to_0(gradient, "float16", 0x1p-8f) == 0.5);
    REQUIRE(share_rounded_to_0(gradient, "float16", 65536) == 0);
}

TEST_CASE("recipe: ranks that look for infinity in their own gradients drift, unless they ask") {
    const LabelledImages images = lines(257);
    const auto course = [&](int ranks, const MixedVariant& variant) {
        World world(thread_options(ranks));
        MixedResult found;
        world.run([&](Rank& rank) {
            const MixedResult mine = learn_mixed(rank, images, variant, 12, 1);
            if (rank.rank() == ranks - 1)
                found = mine;
        });
        return found;
    };
    MixedVariant variant{.products = "float16",
                         .scaler = {.initial_scale = 0x1p21, .growth_interval = 5}};
    for (const int ranks : {2, 3}) {
        CAPTURE(ranks);
        for (const FoundInf agreed : {FoundInf::in_the_average, FoundInf::in_its_own_and_asks}) {
            variant.found_inf = agreed;
            const MixedResult found = course(ranks, variant);
            REQUIRE(found.are_equal);
            REQUIRE(found.steps == 12);
            REQUIRE(found.skipped[0] > 1);
            REQUIRE(found.skipped ==
                    std::vector<int>(static_cast<std::size_t>(ranks), found.skipped[0]));
        }
        variant.found_inf = FoundInf::in_its_own;
        const MixedResult found = course(ranks, variant);
        REQUIRE_FALSE(found.are_equal);
        REQUIRE(found.steps < 12);
    }
    const double exact = course(2, {}).loss;
    REQUIRE(course(2, {.products = "float16"}).loss == Approx(exact).epsilon(0.01));
    REQUIRE(course(2, {.products = "bfloat16"}).loss == Approx(exact).epsilon(0.05));
    variant.scaler = without_scaling;
    variant.scaler.initial_scale = 0x1p-20;
    REQUIRE(course(2, variant).loss > exact + 0.1);
}

}  // namespace ddp::test
