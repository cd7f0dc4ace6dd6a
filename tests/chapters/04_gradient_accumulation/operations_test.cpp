// The two operations that batches are computed with, and the models made of them.
#include "04_gradient_accumulation/batch_operations.hpp"

#include "01_sgd/operations.hpp"
#include "04_gradient_accumulation/batch_models.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

std::shared_ptr<Parameter> make(Device& device, const std::string& name, const Shape& shape,
                                const std::vector<float>& values) {
    return std::make_shared<Parameter>(name, Tensor(device, shape, values));
}

// Whole numbers that encode row and column: every sum of few products is exact.
std::vector<float> numbered(int rows, int columns, int factor) {
    std::vector<float> values;
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < columns; column++)
            values.push_back(static_cast<float>((row * 7 + column * factor) % 13 - 5));
    return values;
}

}  // namespace

TEST_CASE("accumulation: a product of matrices, in every size around a strip") {
    Device device;
    for (const int columns : {1, 3, 31, 32, 33, 70}) {
        const int rows = 5, depth = 4;
        const std::vector<float> x = numbered(rows, depth, 3), w = numbered(depth, columns, 5);
        Tape tape(device);
        const Variable y = matrix_product(tape.constant(Tensor(device, {rows, depth}, x)),
                                          tape.constant(Tensor(device, {depth, columns}, w)));
        REQUIRE(y.value().shape() == Shape{rows, columns});
        std::vector<float> expected;
        for (int row = 0; row < rows; row++)
            for (int column = 0; column < columns; column++) {
                float sum = 0;
                for (int k = 0; k < depth; k++)
                    sum += x[row * depth + k] * w[k * columns + column];
                expected.push_back(sum);
            }
        REQUIRE(y.value().to_host() == expected);
    }
}

TEST_CASE("accumulation: the operations' derivatives agree with finite differences") {
    Device device;
    const auto x = make(device, "x", {3, 4}, distinct_values(12, 1.0f));
    const auto w = make(device, "w", {4, 35}, random_weights(140));
    REQUIRE(message_of([&] {
                require_gradients(device, {x, w}, [&](Tape& tape) {
                    return matrix_product(tape.parameter(x), tape.parameter(w));
                });
            }) == "");
    x->clear_gradient();
    REQUIRE(message_of([&] {
                require_gradients(device, {x},
                                  [&](Tape& tape) { return mean(square(tape.parameter(x))); });
            }) == "");
    Tape tape(device);
    REQUIRE(message_of([&] { matrix_product(tape.parameter(w), tape.parameter(x)); }) ==
            "matrix_product needs [n, inputs] and [inputs, outputs], not [4, 35] and [3, 4]");
}

TEST_CASE("accumulation: gradients of a product add to what is there, after their own sum") {
    Device device;
    const auto w = make(device, "w", {1, 1}, {0});
    const auto backward = [&](const std::vector<float>& x) {
        Tape tape(device);
        const int count = static_cast<int>(x.size());
        const Variable y =
            matrix_product(tape.constant(Tensor(device, {count, 1}, x)), tape.parameter(w));
        tape.backward(weighted_sum(y, std::vector<float>(x.size(), 1.0f)));
        return w->gradient().to_host()[0];
    };
    // 1 + 2^-24 is rounded to 1; 1 + (2^-24 + 2^-24) is not: the order of a sum shows in its bits.
    const float small = 1.0f / (1 << 24);
    REQUIRE(backward({1, small, small}) == 1.0f);
    w->clear_gradient();
    REQUIRE(backward({1}) == 1.0f);
    REQUIRE(backward({small, small}) == 1.0f + 2 * small);
}

TEST_CASE("accumulation: what the picture model takes is what was predicted, to blocks of 512 B") {
    LabelledImages images{1, 28, 28, std::vector<std::uint8_t>(40 * 784, 90), {}};
    for (int i = 0; i < 40; i++)
        images.labels.push_back(static_cast<std::uint8_t>(i % 10));
    for (const int pictures : {1, 7, 40}) {
        Device device;
        Random random(1);
        const PictureModel model(device, images, 32, random);
        PlainSgd optimizer(model.parameters(), 0.1);
        Tape tape(device);
        const std::size_t before = device.memory().live_bytes;
        const std::size_t parameters = (784 * 32 + 32 * 10) * sizeof(float);
        REQUIRE(before >= 2 * parameters);
        REQUIRE(before < 2 * parameters + 4 * 512);
        accumulate(tape, micro_batches({0, 40}, pictures),
                   [&](Tape& on, Samples samples) { return model.loss(on, samples); });
        const std::size_t taken = device.memory().peak_bytes - before;
        REQUIRE(taken >= model.activation_bytes(pictures));
        REQUIRE(taken < model.activation_bytes(pictures) + 20 * 512);
        // All activations are given back. The number with which backward begins is kept.
        REQUIRE(device.memory().live_bytes == before + 512);
    }
}

}  // namespace ddp::test
