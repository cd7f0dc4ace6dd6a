// What the chapter shows beside its training: accumulation, sending orders, and training by hook.
#include "tests/bench/15_overlap/lessons.hpp"
#include "tests/bench/15_overlap/hook_training.hpp"
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

// Returns the result of rank 0 of `ranks` ranks.
Accumulated learn(int ranks, NoSyncAround around, const Accumulation& accumulation) {
    static const LabelledImages images = lines(211);
    World world(thread_options(ranks));
    Accumulated result;
    world.run([&](Rank& rank) {
        const Accumulated mine = learn_in_groups(rank, images, around, accumulation, 3);
        if (rank.rank() == 0)
            result = mine;
    });
    return result;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
    double largest = a.size() == b.size() ? 0 : 1e9;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); i++)
        largest = std::max<double>(largest, std::abs(a[i] - b[i]));
    return largest;
}

}  // namespace

TEST_CASE("accumulation: no_sync around both sends once a group, and learns the same") {
    const Accumulation groups{.micro_batches = 13, .group = 5, .batch = 2};
    for (const int ranks : {1, 2, 3, 4}) {
        CAPTURE(ranks);
        const Accumulated both = learn(ranks, NoSyncAround::forward_and_backward, groups);
        const Accumulated backward = learn(ranks, NoSyncAround::backward, groups);
        const Accumulated never = learn(ranks, NoSyncAround::nothing, groups);
        REQUIRE(both.steps == 3);
        REQUIRE(both.all_reduces == 3);  // one bucket
        REQUIRE(backward.all_reduces == 13);
        REQUIRE(never.all_reduces == 13);
        REQUIRE(largest_difference(both.parameters, backward.parameters) < 1e-6);
        REQUIRE(largest_difference(both.parameters, never.parameters) < 1e-6);
    }
}

TEST_CASE("accumulation: a group of micro-batches is one batch, and so is one that is not full") {
    // Two micro-batches of four samples, and one alone: three batches.
    const Accumulated pieces =
        learn(3, NoSyncAround::forward_and_backward, {.micro_batches = 10, .group = 4, .batch = 3});
    const Accumulated full =
        learn(3, NoSyncAround::forward_and_backward, {.micro_batches = 2, .group = 1, .batch = 12});
    const Accumulated first =
        learn(3, NoSyncAround::forward_and_backward, {.micro_batches = 8, .group = 4, .batch = 3});
    REQUIRE(largest_difference(first.parameters, full.parameters) < 1e-6);
    // The last group has two: their mean is a step as long as the others'.
    const Accumulated as_two =
        learn(3, NoSyncAround::forward_and_backward, {.micro_batches = 5, .group = 2, .batch = 6});
    REQUIRE(pieces.steps == 3);
    REQUIRE(as_two.steps == 3);
    REQUIRE(largest_difference(pieces.parameters, as_two.parameters) < 1e-6);
    REQUIRE(largest_difference(pieces.parameters, first.parameters) > 1e-4);
}

TEST_CASE("order: ready order mixes gradients, names reveal it, and an agreed order is right") {
    for (const int ranks : {2, 3, 4}) {
        World world(thread_options(ranks));
        CAPTURE(ranks);
        const auto error = [&](SendingOrder order) {
            std::vector<double> errors(static_cast<std::size_t>(ranks));
            world.run([&](Rank& rank) {
                errors[static_cast<std::size_t>(rank.rank())] = error_of_step(rank, order);
            });
            return errors;
        };
        for (const double each : error(SendingOrder::ready))
            REQUIRE(each > 0.05);
        for (const double each : error(SendingOrder::agreed))
            REQUIRE(each < 1e-6);
        const std::string failure =
            failure_of(world, [](Rank& rank) { error_of_step(rank, SendingOrder::ready_by_name); });
        REQUIRE(has(failure, "all ranks must do the same, in the same order"));
        REQUIRE(has(failure, "\"a.weight\""));
        REQUIRE(has(failure, "\"b.weight\""));
        for (const double each : error(SendingOrder::agreed))  // the cure, in a run of its own
            REQUIRE(each < 1e-6);
    }
}

TEST_CASE("hooks: training succeeds with every hook, and each loses as much as it reports") {
    const LabelledImages images = lines(130);
    World world(thread_options(3));
    const auto course = [&](const std::string& name, const HookTraining& training = {12, 10}) {
        HookResult found;
        world.run([&](Rank& rank) {
            const HookResult mine = learn_with_hook(rank, images, name, training, 1);
            if (rank.rank() == 2)
                found = mine;
        });
        return found;
    };
    const HookResult exact = course("average"), brain = course("bfloat16"),
                     thin = course("power_sgd");
    REQUIRE(exact.step_error == 0);
    REQUIRE(exact.sum_error == 0);
    REQUIRE(brain.step_error > 2e-4);
    REQUIRE(brain.step_error < 2e-2);
    REQUIRE(thin.step_error > brain.step_error);
    REQUIRE(thin.sum_error < thin.step_error);
    REQUIRE(2 * brain.bytes == exact.bytes);
    REQUIRE(50 * thin.bytes < exact.bytes);
    for (const HookResult* each : {&brain, &thin})
        REQUIRE(each->loss == Approx(exact.loss).epsilon(0.2));
    // Until PowerSGD begins it averages, and that is what it sends.
    const HookResult early = course("power_sgd", {5, 5}), begun = course("power_sgd", {5, 4});
    REQUIRE(early.bytes == exact.bytes);
    REQUIRE(early.step_error == 0);
    REQUIRE(begun.bytes == thin.bytes);
    REQUIRE(begun.step_error > 0.01);
}

}  // namespace ddp::test
