// Embedding, layer normalisation and the loss: finite differences, and their edges.
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "03_network/cross_entropy.hpp"
#include "20_transformer/layers/embedding.hpp"
#include "20_transformer/layers/exponential.cuh"
#include "20_transformer/layers/layer_norm.hpp"
#include "20_transformer/layers/tokens.hpp"
#include "20_transformer/token_loss.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Values = std::vector<float>;

std::shared_ptr<Parameter> table_of(Device& device, int rows, int width, float range = 1.0f) {
    return std::make_shared<Parameter>(
        "table", Tensor(device, {rows, width},
                        distinct_values(static_cast<std::size_t>(rows) * width, range)));
}

Labels labels_of(Device& device, const std::vector<int>& labels) {
    return Labels(device, {static_cast<int>(labels.size())}, labels);
}

// Holds back what is enqueued on a stream after it, until open() or for three seconds.
class Gate {
  public:
    explicit Gate(Stream& stream) : stream_(stream) {
        DDP_CHECK(cudaLaunchHostFunc(stream, wait, this));
    }
    ~Gate() {
        open();
        stream_.synchronize();
    }
    // Lets the stream go on. Returns false if it has done so before.
    bool open() {
        is_open_ = true;
        return !has_given_up_;
    }

  private:
    static void wait(void* gate) {
        auto& self = *static_cast<Gate*>(gate);
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
        while (!self.is_open_ && !self.has_given_up_) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            self.has_given_up_ = std::chrono::steady_clock::now() > end;
        }
    }
    Stream& stream_;
    std::atomic<bool> is_open_ = false, has_given_up_ = false;
};

}  // namespace

// ---- exp

TEST_CASE("exponential: that of the library to 2e-7, and no less than that of -87") {
    for (float x = 0.3f; x > -87.0f; x -= 0.0137f)
        REQUIRE(exponential(x) == Approx(std::exp(double{x})).epsilon(2e-7).margin(0));
    REQUIRE(exponential(0.0f) == 1.0f);
    REQUIRE(exponential(-87.0f) == Approx(std::exp(-87.0)).epsilon(2e-7).margin(0));
    REQUIRE(exponential(-1e30f) == exponential(-87.0f));
    REQUIRE(exponential(-std::numeric_limits<float>::infinity()) == exponential(-87.0f));
    REQUIRE(std::isnan(exponential(std::numeric_limits<float>::quiet_NaN())));
}

// ---- Embedding

TEST_CASE("embedding: scaled rows of the table, and the positions") {
    Device device;
    const auto table = table_of(device, 7, 4);
    Embedding embedding("embedding", table, sinusoidal_positions(device, 9, 4));
    Tape tape(device);
    const std::vector<int> tokens{5, 2, 0, 6, 5, 2};
    const Tokens t(device, {2, 3}, tokens);
    const Values weight = table->value.to_host();
    for (const int first : {0, 4}) {
        const Values y = embedding.forward(tape, t, first).value().to_host();
        for (int row = 0; row < 6; row++)
            for (int column = 0; column < 4; column++) {
                const double angle = (first + row % 3) / (column < 2 ? 1.0 : 100.0);
                const double position = column % 2 == 0 ? std::sin(angle) : std::cos(angle);
                const double right =
                    2.0 * weight[static_cast<std::size_t>(tokens[row]) * 4 + column] + position;
                REQUIRE(y[row * 4 + column] == Approx(right).margin(1e-6));
            }
    }
    REQUIRE(message_of([&] { embedding.forward(tape, t, 7); }) ==
            "embedding knows 9 positions, and a sentence here has 10 tokens: leave longer "
            "sentences out, or make the model for longer ones");
    REQUIRE_THAT(message_of([&] { sinusoidal_positions(device, 9, 5); }),
                 Catch::Matchers::EndsWith("a width of 5 is not even"));
}

TEST_CASE("embedding: every place of a token adds to its row, wherever the table is used") {
    Device device;
    const auto table = table_of(device, 6, 4);
    Embedding first("first", table, sinusoidal_positions(device, 9, 4));
    Embedding second("second", table, sinusoidal_positions(device, 9, 4));
    TokenScores scores("scores", table);
    const Tokens tokens(device, {2, 4}, std::vector<int>{5, 2, 5, 0, 3, 5, 2, 2});
    REQUIRE(message_of([&] {
                require_gradients(device, {table},
                                  [&](Tape& tape) { return first.forward(tape, tokens); });
            }) == "");
    table->clear_gradient();
    REQUIRE(message_of([&] {
                require_gradients(device, {table}, [&](Tape& tape) {
                    first.forward(tape, tokens);  // not behind the loss
                    return scores.forward(second.forward(tape, tokens));
                });
            }) == "");
    // The token 1 is nowhere, and the memory of its row was not zero before.
    table->clear_gradient();
    fill(table->gradient_for_writing(), 7.0f);
    table->clear_gradient();
    Tape tape(device);
    tape.backward(weighted_sum(first.forward(tape, tokens), random_weights(32)));
    const Values gradient = table->gradient().to_host();
    for (int column = 0; column < 4; column++)
        REQUIRE(gradient[4 + column] == 0.0f);
}

TEST_CASE("embedding: a token that does not exist is seen in the result, and in no gradient") {
    Device device;
    const auto table = table_of(device, 3, 2);
    Embedding embedding("embedding", table, sinusoidal_positions(device, 4, 2));
    for (const int token : {3, -1}) {
        Tape tape(device);
        const Variable y =
            embedding.forward(tape, Tokens(device, {1, 2}, std::vector<int>{1, token}));
        const Values rows = y.value().to_host();
        REQUIRE(std::isfinite(rows[1]));
        REQUIRE(std::isnan(rows[2]));
        table->clear_gradient();
        tape.backward(weighted_sum(y, {0, 0, 1, 1}));
        REQUIRE(table->gradient().to_host() == Values(6, 0.0f));
    }
}

TEST_CASE("tokens: a batch on the device, and how long its sentences are without padding") {
    Device device;
    const std::vector<int> source{4, 5, 2, 0, 9, 0, 2, 0}, target{1, 6, 7, 8, 0, 0, 0, 0};
    const DeviceBatch batch =
        to_device(device, {.sentences = 2, .length = 4, .source = source, .target_in = target});
    REQUIRE(batch.source.to_host() == source);
    REQUIRE(batch.target_in.to_host() == target);
    REQUIRE(batch.target_out.is_empty());
    REQUIRE(lengths_without_padding(batch.source).to_host() == std::vector<int>{3, 3});
    REQUIRE(lengths_without_padding(batch.target_in).to_host() == std::vector<int>{4, 0});
}

TEST_CASE("tokens: the host goes on while two batches wait in pinned memory, and each arrives") {
    Device device;
    TokenSlots slots(device, 6);
    const auto batch_from = [](int first, int sentences, int length) {
        TokenBatch batch{.sentences = sentences, .length = length};
        for (std::vector<int>* tokens : {&batch.source, &batch.target_in, &batch.target_out})
            for (int i = 0; i < sentences * length; i++)
                tokens->push_back(first++);
        return batch;
    };
    std::vector<DeviceBatch> arrived;
    Gate gate(device.stream());
    arrived.push_back(slots.to_device(batch_from(100, 2, 3)));
    arrived.push_back(slots.to_device(batch_from(200, 1, 5)));
    REQUIRE(gate.open());
    for (int i = 3; i < 7; i++)  // each slot is written again
        arrived.push_back(slots.to_device(batch_from(100 * i, 3, 2)));
    for (int i = 0; i < 6; i++) {
        const TokenBatch right = i == 1 ? batch_from(200, 1, 5)
                                        : batch_from(100 * (i + 1), i == 0 ? 2 : 3, i == 0 ? 3 : 2);
        const DeviceBatch& batch = arrived[static_cast<std::size_t>(i)];
        REQUIRE(batch.source.shape() == Shape{right.sentences, right.length});
        REQUIRE(batch.target_out.shape() == Shape{right.sentences * right.length});
        REQUIRE(batch.source.to_host() == right.source);
        REQUIRE(batch.target_in.to_host() == right.target_in);
        REQUIRE(batch.target_out.to_host() == right.target_out);
    }
}

TEST_CASE("tokens: a slot is written again only when its copy is done") {
    Device device;
    TokenSlots slots(device, 1);
    const auto one = [](int token) {
        return TokenBatch{.sentences = 1, .length = 1, .source = {token}, .target_in = {token}};
    };
    Gate gate(device.stream());
    const DeviceBatch first = slots.to_device(one(7)), second = slots.to_device(one(8));
    REQUIRE(first.target_out.is_empty());
    std::thread opener([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        gate.open();
    });
    const DeviceBatch third = slots.to_device(one(9));  // would otherwise reach the first
    opener.join();
    REQUIRE(first.source.to_host() == std::vector<int>{7});
    REQUIRE(second.source.to_host() == std::vector<int>{8});
    REQUIRE(third.source.to_host() == std::vector<int>{9});
    REQUIRE(
        message_of([&] {
            slots.to_device({.sentences = 1, .length = 2, .source = {1, 2}, .target_in = {1, 2}});
        }) == "a batch of 4 tokens does not fit into a slot for 3");
}

// ---- Layer normalisation

TEST_CASE("layer_norm: backward agrees with finite differences") {
    Device device;
    for (const Shape& shape : {Shape{5, 7}, Shape{1, 33}, Shape{35, 3}}) {
        LayerNorm norm("norm", device, shape[1]);
        norm.weight->value.copy_from(distinct_values(norm.weight->value.size(), 1.5f));
        norm.bias->value.copy_from(distinct_values(norm.bias->value.size(), 1.0f));
        REQUIRE(message_of([&] { require_layer_gradients(device, norm, shape, 3e-3, 4e-3); }) ==
                "");
    }
}

TEST_CASE("layer_norm: a large mean does not drown the deviation") {
    Device device;
    LayerNorm norm("norm", device, 4);
    Tape tape(device);
    const Tensor x(device, {2, 4}, Values{10'001, 10'003, 10'005, 10'007, 2, 2, 2, 2});
    const Values y = norm.forward(tape.constant(x)).value().to_host();
    REQUIRE(y[0] == Approx(-3 / std::sqrt(5.0)).epsilon(1e-5));
    REQUIRE(y[3] == Approx(3 / std::sqrt(5.0)).epsilon(1e-5));
    REQUIRE(Values(y.begin() + 4, y.end()) == Values(4, 0.0f));  // no deviation: no division by 0
    REQUIRE(message_of([&] {
                norm.forward(tape.constant(Tensor(device, {2, 5})));
            }) == "norm takes [rows, 4], not [2, 5]");
}

// ---- The loss

TEST_CASE("token_loss: backward agrees with finite differences, smoothed or not") {
    Device device;
    const Labels target = labels_of(device, {3, 0, 5, 1, 0});
    const auto logits = table_of(device, 5, 6, 2.0f);
    for (const double smoothing : {0.0, 0.1, 0.7}) {
        REQUIRE(message_of([&] {
                    require_gradients(device, {logits}, [&](Tape& tape) {
                        return token_loss(tape.parameter(logits), target, smoothing, 3);
                    });
                }) == "");
        // Padding has no gradient, and not even NaN in its logits gives it one.
        const Values gradient = logits->gradient().to_host();
        for (int c = 0; c < 6; c++)
            REQUIRE(gradient[6 + c] == 0.0f);
        logits->clear_gradient();
    }
}

TEST_CASE("token_loss: without padding and smoothing it is cross_entropy") {
    Device device;
    const Labels target = labels_of(device, {3, 4, 5, 1, 1});
    const auto logits = table_of(device, 5, 6, 30.0f);
    Values losses;
    std::vector<Values> gradients;
    for (const bool by_tokens : {true, false}) {
        Tape tape(device);
        const Variable x = tape.parameter(logits);
        const Variable loss = by_tokens ? token_loss(x, target, 0, 5) : cross_entropy(x, target);
        losses.push_back(loss.value().to_host()[0]);
        tape.backward(loss);
        gradients.push_back(logits->gradient().to_host());
        logits->clear_gradient();
    }
    REQUIRE(losses[0] == Approx(losses[1]).epsilon(1e-6));
    for (std::size_t i = 0; i < gradients[0].size(); i++)
        REQUIRE(gradients[0][i] == Approx(gradients[1][i]).margin(1e-6));
}

TEST_CASE("token_loss: it adds to a gradient that is there, and is scaled with the loss") {
    Device device;
    const Labels target = labels_of(device, {3, 0, 5});
    const auto logits = table_of(device, 3, 6);
    Tape tape(device);
    const Variable loss = token_loss(tape.parameter(logits), target, 0.1, 2);
    tape.backward(loss);
    const Values once = logits->gradient().to_host();
    tape.backward(loss, {}, 2.0f);
    const Values thrice = logits->gradient().to_host();
    for (std::size_t i = 0; i < once.size(); i++)
        REQUIRE(thrice[i] == Approx(3 * once[i]).margin(1e-7));
}

TEST_CASE("token_loss: a wrong token is a NaN, wrong arguments are refused") {
    Device device;
    const auto logits = table_of(device, 2, 6);
    Tape tape(device);
    const Variable x = tape.parameter(logits);
    for (const int wrong : {6, -1})
        REQUIRE(
            std::isnan(token_loss(x, labels_of(device, {1, wrong}), 0.1, 2).value().to_host()[0]));
    const Labels fine = labels_of(device, {1, 2});
    REQUIRE_THAT(message_of([&] { token_loss(x, labels_of(device, {1}), 0.1, 2); }),
                 Catch::Matchers::StartsWith("token_loss takes logits [rows, vocabulary]"));
    for (const double wrong : {-0.1, 1.0, std::nan("")})
        REQUIRE_THAT(message_of([&] { token_loss(x, fine, wrong, 2); }),
                     Catch::Matchers::StartsWith("the label smoothing is"));
    REQUIRE_THAT(message_of([&] { token_loss(x, fine, 0.1, 0); }),
                 Catch::Matchers::StartsWith("a loss is divided by a number of tokens"));
}

}  // namespace ddp::test
