// The model without an encoder: no token sees a later one, no loss is for the source, and decoding
// says what the whole model says.
#include "20_transformer/decoder_only.hpp"
#include "20_transformer/token_loss.hpp"
#include "20_transformer/words/tokenizer.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Values = std::vector<float>;

constexpr int text_vocabulary = 11;
const std::vector<std::vector<int>> read_sources{
    {5, 9, 4, 7, 2}, {6, 2, 0, 0, 0}, {10, 8, 2, 0, 0}};
const std::vector<std::vector<int>> read_targets{{1, 8, 6}, {1, 7, 5, 4, 9}, {1}};

struct Model {
    Device device;
    DropoutMasks masks{1};
    Random random{7};
    DecoderOnlyTransformer model{device,
                                 {.vocabulary = text_vocabulary,
                                  .width = 8,
                                  .heads = 2,
                                  .layers = 1,
                                  .feed_forward = 7,
                                  .longest = 6,
                                  .decoder_only = true},
                                 random,
                                 masks};

    Model() { model.set_training(false); }

    Values scores(const std::vector<int>& text) {
        Tape tape(device);
        const Tokens tokens(device, {1, static_cast<int>(text.size())}, text);
        return model.forward(tape, {}, tokens).value().to_host();
    }
};

TokenBatch batch_of_three() {
    TokenBatch batch;
    batch.sentences = 3;
    batch.length = 5;
    for (std::size_t i = 0; i < read_sources.size(); i++) {
        std::vector<int> in = read_targets[i], out(in.begin() + 1, in.end());
        out.push_back(end_token);
        in.resize(5, pad_token), out.resize(5, pad_token);
        batch.source.insert(batch.source.end(), read_sources[i].begin(), read_sources[i].end());
        batch.target_in.insert(batch.target_in.end(), in.begin(), in.end());
        batch.target_out.insert(batch.target_out.end(), out.begin(), out.end());
    }
    return batch;
}

}  // namespace

TEST_CASE("decoder only: a row is the source, its end, the beginning and the target") {
    const TokenBatch text = joined(batch_of_three());
    REQUIRE(text.length == 10);
    REQUIRE(text.target_in == std::vector<int>{5,  9, 4, 7, 2, 1, 8, 6, 0, 0,  //
                                               6,  2, 1, 7, 5, 4, 9, 0, 0, 0,  //
                                               10, 8, 2, 1, 0, 0, 0, 0, 0, 0});
    REQUIRE(text.target_out == std::vector<int>{0, 0, 0, 0, 0, 8, 6, 2, 0, 0,  //
                                                0, 0, 7, 5, 4, 9, 2, 0, 0, 0,  //
                                                0, 0, 0, 2, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("decoder only: a later token changes no earlier score, in the target or the source") {
    Model decoder;
    const std::vector<int> text{5, 9, 4, 2, 1, 8, 6, 7};
    const Values before = decoder.scores(text);
    for (std::size_t changed = 0; changed < text.size(); changed++) {
        std::vector<int> other = text;
        other[changed] = 10;
        const Values after = decoder.scores(other);
        CAPTURE(changed);
        for (std::size_t i = 0; i < changed * text_vocabulary; i++)
            REQUIRE(after[i] == before[i]);
        // It changes those of its own place, and of every later one.
        for (std::size_t place = changed; place < text.size(); place++)
            REQUIRE_FALSE(std::equal(after.begin() + place * text_vocabulary,
                                     after.begin() + (place + 1) * text_vocabulary,
                                     before.begin() + place * text_vocabulary));
    }
}

TEST_CASE("decoder only: the loss and its gradient are those of the target's tokens") {
    Model decoder;
    const DeviceBatch batch = to_device(decoder.device, batch_for(decoder.model, batch_of_three()));
    const std::vector<int> wanted = batch.target_out.to_host();
    Tape tape(decoder.device);
    const Tensor scores = decoder.model.forward(tape, batch.source, batch.target_in).value();
    // The scores alone, to see where their gradient is not zero.
    const auto parameter = std::make_shared<Parameter>("scores", scores);
    const Variable loss = token_loss(tape.parameter(parameter), batch.target_out, 0.1, 1.0);
    tape.backward(loss);
    const Values gradient = parameter->gradient().to_host();
    int learned = 0;
    for (std::size_t row = 0; row < wanted.size(); row++) {
        const bool is_zero = std::all_of(gradient.begin() + row * text_vocabulary,
                                         gradient.begin() + (row + 1) * text_vocabulary,
                                         [](float value) { return value == 0; });
        CAPTURE(row);
        REQUIRE(is_zero == (wanted[row] == pad_token));
        learned += !is_zero;
    }
    REQUIRE(learned == 3 + 5 + 1);  // the targets with their ends
}

TEST_CASE("decoder only: backward reaches every parameter, and agrees with finite differences") {
    Model decoder;
    const DeviceBatch batch = to_device(decoder.device, batch_for(decoder.model, batch_of_three()));
    Parameters some;
    for (const auto& parameter : decoder.model.parameters())
        if (parameter->name == "embedding.weight" || parameter->name.ends_with("norm1.weight") ||
            parameter->name.ends_with("value.weight"))
            some.push_back(parameter);
    REQUIRE(some.size() == 1 + 2 + 2);  // of two layers, as many as an encoder and a decoder of one
    const auto loss = [&](Tape& tape) {
        return token_loss(decoder.model.forward(tape, batch.source, batch.target_in),
                          batch.target_out, 0.0, 4.0);
    };
    // Short steps, over which no ReLU bends.
    REQUIRE(message_of([&] { require_gradients(decoder.device, some, loss, 2e-3, 1e-2); }) == "");
    for (const auto& parameter : decoder.model.parameters())
        REQUIRE(parameter->has_gradient());
}

TEST_CASE("decoder only: each step of decoding has the scores of the whole text alone") {
    Model decoder;
    Tokens rows = padded(decoder.device, {{5, 9, 4, 7, 2}, {6, 2}, {10, 8, 2}});
    REQUIRE(rows.to_host() == std::vector<int>{5, 9, 4, 7, 2, 6, 2, 0, 0, 0, 10, 8, 2, 0, 0});
    const NextScores next = decoder.model.begin_decoding(rows);
    struct Step {
        std::vector<int> from_row, last;
        std::vector<std::vector<int>> texts;
    };
    const std::vector<Step> steps{
        {{0, 1, 2}, {1, 1, 1}, {{5, 9, 4, 7, 2, 1}, {6, 2, 1}, {10, 8, 2, 1}}},
        {{2, 1, 1}, {4, 5, 6}, {{10, 8, 2, 1, 4}, {6, 2, 1, 5}, {6, 2, 1, 6}}},
        {{1, 0}, {7, 8}, {{6, 2, 1, 5, 7}, {10, 8, 2, 1, 4, 8}}}};
    for (const Step& step : steps) {
        const Values found = next(step.last, step.from_row);
        REQUIRE(found.size() == step.texts.size() * text_vocabulary);
        for (std::size_t row = 0; row < step.texts.size(); row++) {
            const Values all = decoder.scores(step.texts[row]);
            for (std::size_t c = 0; c < text_vocabulary; c++)
                REQUIRE(found[row * text_vocabulary + c] ==
                        Approx(all[all.size() - text_vocabulary + c]).margin(1e-5));
        }
    }
    decoder.model.set_training(true);
    REQUIRE_THROWS_AS(decoder.model.begin_decoding(rows), std::logic_error);
}

}  // namespace ddp::test
