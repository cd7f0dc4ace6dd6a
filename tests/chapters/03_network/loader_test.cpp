// The loader: every sample once, in the order that the seed says, with the right pixels and labels,
// while the device is still busy with the batch before.
#include "03_network/loader.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "03_network/layers/without_parameters.hpp"
#include "03_network/linear.hpp"
#include "03_network/metrics.hpp"
#include "03_network/show/confusion.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// Pixel p of sample n is (7 n + p) mod 256, its label n mod 10.
LabelledImages numbered_images(int count) {
    LabelledImages images{1, 3, 5, {}, {}};
    for (int n = 0; n < count; n++) {
        for (int p = 0; p < 15; p++)
            images.pixels.push_back(static_cast<std::uint8_t>(7 * n + p));
        images.labels.push_back(static_cast<std::uint8_t>(n % 10));
    }
    return images;
}

std::vector<float> pictures(const LabelledImages& images, const std::vector<int>& samples,
                            Normalisation by) {
    std::vector<float> all;
    for (const int n : samples) {
        std::vector<float> one(images.image_size());
        normalise(images.image(static_cast<std::size_t>(n)), by, one);
        all.insert(all.end(), one.begin(), one.end());
    }
    return all;
}

}  // namespace

TEST_CASE("loader: batches hold the samples of the order, normalised as common/data does it") {
    Device device;
    const LabelledImages images = numbered_images(11);
    const Normalisation by{0.25f, 0.5f};
    Loader loader(device, images, by, 4);
    const std::vector<int> order{3, 1, 10, 0, 7, 7, 2, 9, 4, 8};
    loader.start_epoch(order);
    REQUIRE(loader.batches() == 3);
    for (const std::vector<int>& samples :
         {std::vector<int>{3, 1, 10, 0}, std::vector<int>{7, 7, 2, 9}, std::vector<int>{4, 8}}) {
        const auto batch = loader.next();
        REQUIRE(batch);
        REQUIRE(batch->images.shape() == Shape{static_cast<int>(samples.size()), 1, 3, 5});
        REQUIRE(batch->images.to_host() == pictures(images, samples, by));
        std::vector<int> labels;
        for (const int n : samples)
            labels.push_back(n % 10);
        REQUIRE(batch->labels.to_host() == labels);
    }
    REQUIRE_FALSE(loader.next());
    REQUIRE_FALSE(loader.next());
    loader.start_epoch({5});
    REQUIRE(loader.next()->labels.to_host() == std::vector<int>{5});
    REQUIRE_FALSE(loader.next());
}

TEST_CASE("loader: the rows of a table are floats, and come as they are") {
    Device device;
    LabelledImages rows{.height = 1,
                        .width = 3,
                        .pixels = {},
                        .labels = {5, 0, 200},
                        .classes = 201,
                        .are_numbers = true};
    const std::vector<float> values{0.5f, -2, 1e-3f, 3, 4, 5, -6, 7e9f, 8};
    rows.pixels.resize(values.size() * sizeof(float));
    std::memcpy(rows.pixels.data(), values.data(), rows.pixels.size());
    Loader loader(device, rows, {0.25f, 0.5f}, 2);
    loader.start_epoch({2, 0, 1});
    const auto first = loader.next(), last = loader.next();
    REQUIRE(first->images.shape() == Shape{2, 1, 1, 3});
    REQUIRE(first->images.to_host() == std::vector<float>{-6, 7e9f, 8, 0.5f, -2, 1e-3f});
    REQUIRE(first->labels.to_host() == std::vector<int>{200, 5});
    REQUIRE(last->images.to_host() == std::vector<float>{3, 4, 5});
    REQUIRE(last->labels.to_host() == std::vector<int>{0});
}

TEST_CASE("loader: a host that runs ahead does not overwrite what the device has yet to read") {
    Device device;
    const LabelledImages images = numbered_images(64);
    Loader loader(device, images, {}, 3);
    loader.start_epoch(in_order(64));
    std::vector<Batch> batches;  // all enqueued before the first is looked at
    Tensor busy(device, {1 << 20});
    while (auto batch = loader.next()) {
        batches.push_back(*batch);
        fill(busy, 1.0f);
    }
    REQUIRE(batches.size() == 22);
    for (std::size_t b = 0; b < batches.size(); b++) {
        std::vector<int> samples;
        for (int n = 3 * static_cast<int>(b); n < std::min(64, 3 * static_cast<int>(b) + 3); n++)
            samples.push_back(n);
        REQUIRE(batches[b].images.to_host() == pictures(images, samples, {}));
    }
}

TEST_CASE("loader: an epoch shows every sample once, in an order of seed and epoch") {
    Device device;
    const int count = 1003;
    REQUIRE(shuffled(count, 5, 0) == shuffled(count, 5, 0));
    REQUIRE(shuffled(count, 5, 0) != shuffled(count, 5, 1));
    REQUIRE(shuffled(count, 5, 0) != shuffled(count, 6, 0));
    REQUIRE(shuffled(count, 5, 0) != in_order(count));
    std::vector<int> order = shuffled(count, 5, 3);
    std::sort(order.begin(), order.end());
    REQUIRE(order == in_order(count));

    // Every place gets every sample equally often: 4 samples have 24 orders.
    std::map<std::vector<int>, int> orders;
    for (int epoch = 0; epoch < 2400; epoch++)
        orders[shuffled(4, 1, epoch)]++;
    REQUIRE(orders.size() == 24);
    for (const auto& [order, times] : orders)
        REQUIRE((times > 50 && times < 160));
}

TEST_CASE("loader: the last incomplete batch is kept or dropped") {
    Device device;
    const LabelledImages images = numbered_images(10);
    const auto sizes = [&](int batch, LastBatch last) {
        Loader loader(device, images, {}, batch, last);
        loader.start_epoch(in_order(10));
        std::vector<int> all;
        while (const auto one = loader.next())
            all.push_back(one->labels.dim(0));
        REQUIRE(static_cast<int>(all.size()) == loader.batches());
        return all;
    };
    REQUIRE(sizes(4, LastBatch::keep) == std::vector<int>{4, 4, 2});
    REQUIRE(sizes(4, LastBatch::drop) == std::vector<int>{4, 4});
    REQUIRE(sizes(5, LastBatch::keep) == std::vector<int>{5, 5});
    REQUIRE(sizes(5, LastBatch::drop) == std::vector<int>{5, 5});
    REQUIRE(sizes(10, LastBatch::drop) == std::vector<int>{10});
}

TEST_CASE("loader: wrong batches and samples are refused") {
    Device device;
    const LabelledImages images = numbered_images(10);
    for (const int wrong : {0, -1, 11})
        REQUIRE(message_of([&] { Loader(device, images, {}, wrong); }) ==
                "the batch is " + std::to_string(wrong) +
                    " samples; it must be between 1 and the 10 that the data set has");
    Loader loader(device, images, {}, 4);
    REQUIRE(message_of([&] {
                loader.start_epoch({0, 10});
            }) == "there is no sample 10 in a data set of 10");
    REQUIRE(message_of([&] { loader.start_epoch({-1}); }) ==
            "there is no sample -1 in a data set of 10");
    REQUIRE_FALSE(loader.next());  // no epoch has begun
}

TEST_CASE("metrics: sums over batches of different size, and the first bad step") {
    Device device;
    Metrics metrics(device);
    const auto add = [&](float loss, const std::vector<int>& labels) {
        const Tensor logits(device, {static_cast<int>(labels.size()), 3}, [&] {
            std::vector<float> values;  // predictions 0, 1, 2, 0, ...; ties go to the first
            for (std::size_t i = 0; i < labels.size(); i++)
                for (std::size_t c = 0; c < 3; c++)
                    values.push_back(c >= i % 3 ? 1.0f : -1.0f);
            return values;
        }());
        metrics.add(Tensor(device, {1}, std::vector<float>{loss}), logits,
                    Labels(device, {static_cast<int>(labels.size())}, labels));
    };
    add(2.0f, {0, 1, 2, 0});  // four right
    add(5.0f, {0, 2});        // one right
    Metrics::Totals totals = metrics.read();
    REQUIRE(totals.correct == 5);
    REQUIRE(totals.samples == 6);
    REQUIRE(totals.steps == 2);
    REQUIRE(totals.loss() == Approx(3.0));
    REQUIRE(totals.accuracy() == Approx(5.0 / 6));
    REQUIRE(totals.first_bad_step == -1);
    add(std::numeric_limits<float>::infinity(), {0});
    add(std::numeric_limits<float>::quiet_NaN(), {0});
    REQUIRE(metrics.read().first_bad_step == 2);
    metrics.reset();
    add(1.0f, {1});
    totals = metrics.read();
    REQUIRE(totals.first_bad_step == -1);
    REQUIRE(totals.correct == 0);
    REQUIRE(totals.loss() == 1.0);
}

TEST_CASE("loader: without prefetch the same batches come, each gathered when it is asked for") {
    Device device;
    LabelledImages images = numbered_images(11);
    for (const Prefetch prefetch : {Prefetch::on, Prefetch::off}) {
        images.labels[9] = 9;
        Loader loader(device, images, {}, 4, LastBatch::keep, prefetch);
        loader.start_epoch({3, 1, 10, 0, 7, 7, 2, 9, 4, 8});
        REQUIRE(loader.next()->labels.to_host() == std::vector<int>{3, 1, 0, 0});
        images.labels[9] = 5;  // the second batch is on its way, or not begun
        REQUIRE(loader.next()->labels.to_host() ==
                std::vector<int>{7, 7, 2, prefetch == Prefetch::on ? 9 : 5});
        REQUIRE(loader.next()->labels.to_host() == std::vector<int>{4, 8});
        REQUIRE_FALSE(loader.next());
    }
}

TEST_CASE("confusion: each picture counts once, by its class and by what it was taken for") {
    constexpr int classes = 3;
    Device device;
    // The only pixel is the class that will be named: what is named for 0, 1, 2 is known.
    const LabelledImages images{1, 1, 1, {0, 0, 1, 2, 2, 2, 1, 0, 0}, {0, 0, 0, 0, 1, 1, 1, 2, 2}};
    Random random(1);
    Sequential model("named");
    model.add<Flatten>("flatten");
    Linear& linear = model.add<Linear>("linear", device, 1, classes, random);
    // At x = 0, 1, 2 the largest of -x, 0.5 x - 0.25, x - 1 is that of its number.
    linear.parameters()[0]->value.copy_from(std::vector<float>{-1.0f, 0.5f, 1.0f});
    linear.parameters()[1]->value.copy_from(std::vector<float>{0.0f, -0.25f, -1.0f});
    Loader loader(device, images, {0.0f, 1 / 255.0f}, 4);  // pixels as they are
    loader.start_epoch(in_order(loader.samples()));
    const Confusion confusion = confusion_of(device, model, loader, classes);
    REQUIRE(confusion.counts == std::vector<int>{2, 1, 1, 0, 1, 2, 2, 0, 0});
    REQUIRE(confusion.count(1, 2) == 2);
    REQUIRE(confusion.samples(0) == 4);
    REQUIRE(confusion.samples(2) == 2);
    const auto [a, b, mistakes] = confusion.max_confused();  // 0 for 2, and 2 for 0
    REQUIRE(a == 0);
    REQUIRE(b == 2);
    REQUIRE(mistakes == 3);
}

}  // namespace ddp::test
