// Token by token is the same as all at once, also when rows are picked as beam search picks them.
#include "20_transformer/layers/decoding.hpp"
#include "20_transformer/words/tokenizer.hpp"
#include "tests/chapters/support/gradients.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

using Values = std::vector<float>;

constexpr int vocabulary = 11;

TransformerOptions small_options(bool norm_first) {
    return {.vocabulary = vocabulary,
            .width = 8,
            .heads = 2,
            .layers = 2,
            .feed_forward = 7,
            .longest = 9,
            .dropout = 0.2,
            .norm_first = norm_first};
}

const std::vector<std::vector<int>> sources{{5, 9, 4, 7, 2}, {6, 2, 0, 0, 0}, {10, 8, 2, 0, 0}};

Tokens sources_of(Device& device) {
    std::vector<int> tokens;
    for (const std::vector<int>& source : sources)
        tokens.insert(tokens.end(), source.begin(), source.end());
    return Tokens(device, {3, 5}, tokens);
}

// Returns the scores behind the last token of a target, by the whole model.
Values scores_at_once(Device& device, Transformer& model, int sentence,
                      const std::vector<int>& target) {
    const int length = std::max<int>(5, static_cast<int>(target.size()));
    const auto padded = [&](std::vector<int> tokens) {
        tokens.resize(static_cast<std::size_t>(length), pad_token);
        return Tokens(device, {1, length}, tokens);
    };
    Tape tape(device);
    const Values all =
        model.forward(tape, padded(sources[sentence]), padded(target)).value().to_host();
    const auto last = all.begin() + vocabulary * (static_cast<int>(target.size()) - 1);
    return Values(last, last + vocabulary);
}

}  // namespace

TEST_CASE("decoding: each step's scores are those of the whole model") {
    Device device;
    for (const bool norm_first : {true, false}) {
        Random random(7);
        const DropoutMasks masks(1);
        Transformer model(device, small_options(norm_first), random, masks);
        model.set_training(false);
        Decoding decoding(model, sources_of(device));
        REQUIRE(decoding.rows() == 3);
        // The rows of each step: which they go on with, and their last tokens. Rows double, change
        // places, and a sentence ends.
        struct Step {
            std::vector<int> from_row, last;
        };
        const std::vector<Step> steps{{{0, 1, 2}, {1, 1, 1}},
                                      {{0, 0, 1, 1, 2, 2}, {4, 5, 6, 7, 8, 9}},
                                      {{1, 0, 3, 3, 4, 5}, {9, 8, 7, 6, 5, 4}},
                                      {{4, 5, 1, 1}, {4, 6, 8, 10}},
                                      {{3, 0}, {5, 5}},
                                      {{0, 1}, {6, 7}}};
        std::vector<std::vector<int>> targets(3);
        std::vector<int> sentences{0, 1, 2};
        for (const Step& step : steps) {
            const Tensor scores = decoding.next(step.last, step.from_row);
            std::vector<std::vector<int>> new_targets;
            std::vector<int> new_sentences;
            for (std::size_t row = 0; row < step.last.size(); row++) {
                new_targets.push_back(targets[step.from_row[row]]);
                new_targets.back().push_back(step.last[row]);
                new_sentences.push_back(sentences[step.from_row[row]]);
            }
            targets = new_targets;
            sentences = new_sentences;
            REQUIRE(scores.shape() == Shape{static_cast<int>(step.last.size()), vocabulary});
            const Values found = scores.to_host();
            for (std::size_t row = 0; row < targets.size(); row++) {
                const Values right = scores_at_once(device, model, sentences[row], targets[row]);
                for (int c = 0; c < vocabulary; c++)
                    REQUIRE(found[row * vocabulary + c] == Approx(right[c]).margin(1e-5));
            }
        }
        REQUIRE(decoding.length() == 6);
    }
}

TEST_CASE("decoding: what makes no sense is refused") {
    Device device;
    Random random(7);
    const DropoutMasks masks(1);
    Transformer model(device, small_options(true), random, masks);
    REQUIRE_THAT(message_of([&] { Decoding(model, sources_of(device)); }),
                 Catch::Matchers::StartsWith("a model in training drops numbers at random"));
    model.set_training(false);
    Decoding decoding(model, sources_of(device));
    REQUIRE_THAT(message_of([&] {
                     decoding.next({1, 1}, {0});
                 }),
                 Catch::Matchers::StartsWith("decoding needs a last token and an old row"));
    for (const int wrong : {3, -1})
        REQUIRE_THAT(message_of([&] { decoding.next({1}, {wrong}); }),
                     Catch::Matchers::StartsWith("decoding has no row"));
    // After the longest sentence there are no positions left.
    for (int step = 0; step < 9; step++)
        decoding.next({1}, {0});
    REQUIRE_THAT(message_of([&] { decoding.next({1}, {0}); }),
                 Catch::Matchers::StartsWith("target_embedding knows 9 positions"));
}

}  // namespace ddp::test
