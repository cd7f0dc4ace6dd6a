// Training runs, and the numbers that are computed from their results.
#include "11_data_parallel/training_result.hpp"

#include "03_network/models.hpp"
#include "11_data_parallel/replica.hpp"
#include "tests/chapters/support/replicas.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

LabelledImages stripes(int count) {
    LabelledImages images{1, 28, 28, {}, {}};
    for (int n = 0; n < count; n++) {
        for (int p = 0; p < 784; p++)
            images.pixels.push_back(p / 28 == n % 10 * 2 ? 200 : 10);
        images.labels.push_back(static_cast<std::uint8_t>(n % 10));
    }
    return images;
}

}  // namespace

TEST_CASE(
    "training result: a loss for each batch, and average_gradients is called after each backward") {
    Device device(test_memory);
    Random random(1);
    const LabelledImages images = stripes(50);
    Loader loader(device, images, {0.04f, 1.0f}, 8);
    loader.start_epoch(in_order(50));
    const auto model = make_mlp(device, random, {784, 10});
    const std::uint64_t before = hash_of(model->parameters());
    int calls = 0, present = 0;
    const TrainingResult result = train(device, *model, loader, [&] {
        calls++;
        for (const auto& parameter : model->parameters())
            present += parameter->has_gradient();
    });
    REQUIRE(calls == 7);
    REQUIRE(present == 2 * 7);
    REQUIRE(result.losses.size() == 7);
    REQUIRE(result.losses[0] == Approx(2.3).margin(0.7));
    REQUIRE(result.losses[6] < 0.7 * result.losses[0]);
    REQUIRE(result.hash == hash_of(model->parameters()));
    REQUIRE(result.hash != before);
    REQUIRE(result.step_s > 0);
}

TEST_CASE("training result: the ranks' means, number by number, and how far apart two runs are") {
    World world(thread_options(3));
    std::vector<double> means;
    world.run([&](Rank& rank) {
        const double r = rank.rank();
        const std::vector<double> mine = mean_of_ranks(rank, {r, 10 + 3 * r, -r * r});
        if (rank.rank() == 2)
            means = mine;
    });
    REQUIRE(means.size() == 3);
    REQUIRE(means[0] == Approx(1));
    REQUIRE(means[1] == Approx(13));
    REQUIRE(means[2] == Approx(-5.0 / 3));
    REQUIRE(has(failure_of(world,
                           [](Rank& rank) {
                               const auto count =
                                   static_cast<std::size_t>(rank.rank() == 1 ? 2 : 3);
                               mean_of_ranks(rank, std::vector<double>(count));
                           }),
                "a mean over the ranks needs the same number of values from each"));
    REQUIRE(largest_difference({1, 2, 3}, {1.5, 2, 0}, 2) == 0.5);
    REQUIRE(largest_difference({1, 2, 3}, {1.5, 2, 0}, 9) == 3);
    REQUIRE(largest_difference({1}, {1}, 1) == 0);
}

}  // namespace ddp::test
