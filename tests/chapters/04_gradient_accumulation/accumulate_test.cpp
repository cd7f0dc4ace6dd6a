// Accumulation: a batch in micro-batches is the batch, whatever their size; and each of the usual
// mistakes is told apart from it.
#include "04_gradient_accumulation/accumulate.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "04_gradient_accumulation/batch_models.hpp"
#include "common/gpu/gpu.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Values = std::vector<float>;

// Whole numbers, small enough that floats hold all sums of a batch of 2, 4 or 8 exactly: the order
// of a sum cannot matter, so what must be equal is equal to the bit.
std::vector<House> whole_houses(int count) {
    std::vector<House> houses;
    for (int i = 0; i < count; i++)
        houses.push_back({static_cast<float>(2 + i * 3 % 7), static_cast<float>(1 + i % 3),
                          static_cast<float>(4 + i * 5 % 11)});
    return houses;
}

struct Worker {
    explicit Worker(const std::vector<House>& houses, double learning_rate = 1.0 / 1024)
        : model(device, houses), optimizer({model.weights}, learning_rate), tape(device) {}

    double backward(const std::vector<MicroBatch>& batch) {
        return accumulate(tape, batch,
                          [&](Tape& on, Samples samples) { return model.loss(on, samples); });
    }
    void step(const std::vector<MicroBatch>& batch, bool zeroes = true) {
        backward(batch);
        optimizer.step();
        if (zeroes)
            optimizer.zero_gradients();
    }
    Values gradient() const { return model.weights->gradient().to_host(); }
    Values values() const { return model.weights->value.to_host(); }

    Device device;
    HouseBatchModel model;
    PlainSgd optimizer;
    Tape tape;
};

Values gradient_of(const std::vector<House>& houses, const std::vector<MicroBatch>& batch) {
    Worker learner(houses);
    learner.backward(batch);
    return learner.gradient();
}

// The gradient of the mean loss of all houses with all weights zero, by the formula and in double.
Values expected_gradient(const std::vector<House>& houses) {
    double w1 = 0, w2 = 0, b = 0;
    for (const House& house : houses) {
        const double upstream = -2.0 * house.price / static_cast<double>(houses.size());
        w1 += upstream * house.bedrooms, w2 += upstream * house.bathrooms, b += upstream;
    }
    return {static_cast<float>(w1), static_cast<float>(w2), static_cast<float>(b)};
}

// Of the largest element.
double relative_difference(const Values& a, const Values& b) {
    double largest = 0, difference = 0;
    for (std::size_t i = 0; i < a.size(); i++) {
        largest = std::max<double>(largest, std::abs(a[i]));
        difference = std::max<double>(difference, std::abs(a[i] - b[i]));
    }
    return difference / largest;
}

std::vector<int> counts(const std::vector<Samples>& pieces) {
    std::vector<int> result;
    for (const Samples& piece : pieces)
        result.push_back(piece.count);
    return result;
}

}  // namespace

TEST_CASE("accumulation: the book's two houses, as by hand") {
    const std::vector<House> two = make_houses(2, 1);
    Worker learner(two, 1e-3);
    REQUIRE(learner.backward({{{0, 1}, 0.5f}}) == 112.5);
    REQUIRE(learner.gradient() == Values{-90, -30, -15});
    REQUIRE(learner.backward({{{1, 1}, 0.5f}}) == 72);
    REQUIRE(learner.gradient() == Values{-150, -54, -27});
    learner.optimizer.step();
    REQUIRE(relative_difference({0.150f, 0.054f, 0.027f}, learner.values()) < 1e-6);
}

TEST_CASE("accumulation: what the chapter's tables show as equal is equal") {
    // Two houses of whole numbers, whose sums are exact in a float.
    const std::vector<House> seven = make_houses(7, 1), two(seven.begin(), seven.begin() + 2);
    const std::vector<MicroBatch> sum{{{0, 1}, 1.0f}, {{1, 1}, 1.0f}};
    Worker whole(two, 1e-3), mean(two, 1e-3), slower(two, 0.5e-3);
    whole.step(micro_batches({0, 2}, 2));
    mean.step(micro_batches({0, 2}, 1));
    slower.step(sum);
    REQUIRE(mean.values() == whole.values());
    REQUIRE(slower.values() == mean.values());
    const Values half = gradient_of(two, micro_batches({0, 2}, 1)), added = gradient_of(two, sum);
    REQUIRE(gradient_of(two, micro_batches({0, 2}, 2)) == half);
    for (std::size_t i = 0; i < 3; i++)
        REQUIRE(added[i] == 2 * half[i]);
    // Seven houses: the last group alone, and all of them in micro-batches of 3, 3 and 1.
    REQUIRE(gradient_of(seven, micro_batches({6, 1}, 1)) == gradient_of(seven, {{{6, 1}, 1.0f}}));
    const Values batch = gradient_of(seven, micro_batches({0, 7}, 7)),
                 weighted = gradient_of(seven, micro_batches({0, 7}, 3));
    for (std::size_t i = 0; i < 3; i++)  // about ten roundings of a float
        REQUIRE(weighted[i] == Approx(batch[i]).epsilon(1e-6));
}

TEST_CASE("accumulation: pieces cover all samples once, in order, and scales add up to 1") {
    for (const int count : {1, 2, 7, 8, 512})
        for (int size = 1; size <= std::min(count, 9); size++) {
            int next = 40;
            double scales = 0;
            for (const MicroBatch& micro : micro_batches({40, count}, size)) {
                REQUIRE(micro.samples.first == next);
                REQUIRE(micro.scale == Approx(static_cast<double>(micro.samples.count) / count));
                next += micro.samples.count;
                scales += micro.scale;
            }
            REQUIRE(next == 40 + count);
            REQUIRE(scales == Approx(1.0));
        }
    REQUIRE(counts(split({0, 7}, 3)) == std::vector<int>{3, 3, 1});
    REQUIRE(counts(split({0, 6}, 3)) == std::vector<int>{3, 3});
    REQUIRE(counts(split({0, 7}, 7)) == std::vector<int>{7});
}

TEST_CASE("accumulation: micro-batches of whole numbers are the batch, to the bit") {
    for (const int count : {2, 4, 8}) {
        const std::vector<House> houses = whole_houses(count);
        const Values right = expected_gradient(houses);
        for (int size = 1; size <= count; size *= 2) {
            INFO(count << " houses in micro-batches of " << size);
            REQUIRE(gradient_of(houses, micro_batches({0, count}, size)) == right);
        }
    }
}

TEST_CASE("accumulation: an incomplete last micro-batch, and prices that are no whole numbers") {
    const std::vector<House> houses = make_houses(23, 3);
    const Values right = expected_gradient(houses);
    for (int size = 1; size <= 23; size++) {
        INFO("micro-batches of " << size);
        // At most 23 additions, each off by half a unit in the last place: 23 / 2^24.
        REQUIRE(relative_difference(right, gradient_of(houses, micro_batches({0, 23}, size))) <
                2e-6);
    }
}

TEST_CASE("accumulation: the order of the sum decides its last bits, and nothing else does") {
    const std::vector<House> houses = make_houses(23, 3);
    const Values whole = gradient_of(houses, micro_batches({0, 23}, 23));
    int differing = 0;
    for (int size = 2; size < 23; size++)
        differing += gradient_of(houses, micro_batches({0, 23}, size)) != whole;
    REQUIRE(differing > 0);
    if (!kernels_run_on_cpu) {
        std::cout << "SKIPPED: one house at a time to the bit: a GPU need not round products\n";
        return;
    }
    // One at a time: terms are added one after the other, as within the whole batch.
    REQUIRE(gradient_of(houses, micro_batches({0, 23}, 1)) == whole);
}

TEST_CASE("accumulation: many steps stay those of the whole batch") {
    const std::vector<House> houses = make_houses(7, 1);
    Worker whole(houses), parts(houses);
    for (int step = 0; step < 100; step++) {
        whole.step(micro_batches({0, 7}, 7));
        parts.step(micro_batches({0, 7}, 3));
    }
    // The descent is a contraction: roundings of a step do not grow in the ones behind it.
    REQUIRE(relative_difference(whole.values(), parts.values()) < 1e-5);
}

TEST_CASE("accumulation: the returned loss is the batch's mean") {
    const std::vector<House> houses = whole_houses(8);
    double mean = 0;
    for (const House& house : houses)
        mean += house.price * house.price / 8;
    for (const int size : {1, 2, 3, 5, 8}) {
        Worker learner(houses);
        REQUIRE(learner.backward(micro_batches({0, 8}, size)) == Approx(mean).epsilon(1e-6));
    }
}

TEST_CASE("accumulation: the tape holds one micro-batch at a time, and none at the end") {
    const std::vector<House> houses = whole_houses(8);
    Worker learner(houses);
    std::vector<std::size_t> nodes;
    accumulate(learner.tape, micro_batches({0, 8}, 2), [&](Tape& tape, Samples samples) {
        nodes.push_back(tape.nodes().size());
        return learner.model.loss(tape, samples);
    });
    REQUIRE(nodes == std::vector<std::size_t>(4, 0));
    REQUIRE(learner.tape.nodes().empty());
}

TEST_CASE("accumulation: a backward before it counts, too, until gradients are zeroed") {
    const std::vector<House> houses = whole_houses(4);
    Worker learner(houses);
    learner.backward(micro_batches({0, 4}, 2));
    const Values once = learner.gradient();
    learner.backward(micro_batches({0, 4}, 2));
    for (std::size_t i = 0; i < 3; i++)
        REQUIRE(learner.gradient()[i] == 2 * once[i]);
    learner.optimizer.zero_gradients();
    learner.backward(micro_batches({0, 4}, 2));
    REQUIRE(learner.gradient() == once);
}

TEST_CASE("accumulation: the usual mistakes give other numbers") {
    const std::vector<House> houses = make_houses(7, 1);
    const Values right = expected_gradient(houses);
    std::vector<MicroBatch> batch = micro_batches({0, 7}, 3);
    const auto with_scales = [&](const std::vector<float>& scales) {
        for (std::size_t i = 0; i < batch.size(); i++)
            batch[i].scale = scales[i];
        return relative_difference(right, gradient_of(houses, batch));
    };
    REQUIRE(with_scales({3.0f / 7, 3.0f / 7, 1.0f / 7}) < 2e-6);
    REQUIRE(with_scales({1, 1, 1}) > 1);                          // forgot to divide
    REQUIRE(with_scales({1.0f / 3, 1.0f / 3, 1.0f / 3}) > 0.02);  // k, though the last is smaller
    REQUIRE(with_scales({1.0f / 7, 1.0f / 7, 1.0f / 7}) > 0.3);   // means taken for sums
    // The last group of an epoch has one micro-batch, and is divided by three all the same.
    const std::vector<House> last(houses.end() - 1, houses.end());
    REQUIRE(relative_difference(expected_gradient(last),
                                gradient_of(houses, micro_batches(split({0, 7}, 3).back(), 1))) <
            2e-6);
    REQUIRE(relative_difference(expected_gradient(last),
                                gradient_of(houses, {{{6, 1}, 1.0f / 3}})) > 0.6);
}

TEST_CASE("accumulation: a step without zero goes too far from the second step on") {
    const std::vector<House> houses = whole_houses(4);
    Worker right(houses), wrong(houses);
    right.step(micro_batches({0, 4}, 1));
    wrong.step(micro_batches({0, 4}, 1), false);
    REQUIRE(right.values() == wrong.values());  // the first step does not show it
    right.step(micro_batches({0, 4}, 1));
    wrong.step(micro_batches({0, 4}, 1), false);
    REQUIRE(relative_difference(right.values(), wrong.values()) > 0.2);
}

TEST_CASE("accumulation: what makes no sense is refused in one sentence") {
    REQUIRE(message_of([] {
                micro_batches({0, 7}, 0);
            }) == "a micro-batch of 0 samples makes no sense in a batch of 7: take 1 to 7");
    REQUIRE(message_of([] {
                micro_batches({0, 7}, 8);
            }) == "a micro-batch of 8 samples makes no sense in a batch of 7: take 1 to 7");
    REQUIRE(message_of([] {
                micro_batches({0, 7}, -1);
            }) == "a micro-batch of -1 samples makes no sense in a batch of 7: take 1 to 7");
    REQUIRE(message_of([] {
                split({3, 0}, 1);
            }) == "a batch of 0 samples has no mean loss: give it one or more");
}

}  // namespace ddp::test
