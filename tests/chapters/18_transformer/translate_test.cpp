// The search: greedy takes the likeliest token each time, a wide beam finds the likeliest sentence.
#include "18_transformer/translate.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "18_transformer/layers/decoding.hpp"
#include "18_transformer/translation_training.hpp"
#include "tests/chapters/support/worlds.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

constexpr int vocabulary = 9;

// A model that knows nothing, and so has an opinion of its own about every sentence.
struct Untrained {
    Device device;
    DropoutMasks masks{1};
    Random random{7};
    Transformer model{device,
                      {.vocabulary = vocabulary,
                       .width = 8,
                       .heads = 2,
                       .layers = 1,
                       .feed_forward = 16,
                       .longest = 12,
                       .tie_embeddings = false},
                      random,
                      masks};

    Untrained() { model.set_training(false); }

    // Returns the log-probability of each token behind `target`, by a whole forward.
    std::vector<double> next(const std::vector<int>& source, std::vector<int> target) {
        std::vector<int> from = source;
        from.push_back(end_token);
        target.insert(target.begin(), begin_token);
        const std::size_t last = target.size() - 1;
        const std::size_t length = std::max(from.size(), target.size());
        from.resize(length, pad_token);
        target.resize(length, pad_token);
        TokenBatch batch;
        batch.sentences = 1;
        batch.length = static_cast<int>(length);
        batch.source = from;
        batch.target_in = target;
        Tape tape(device);
        const std::vector<float> scores =
            model.forward(tape.constant(tokens_of(device, batch))).value().to_host();
        const float* row = scores.data() + last * vocabulary;
        double sum = 0;
        for (int token = 0; token < vocabulary; token++)
            sum += std::exp(row[token]);
        std::vector<double> logs;
        for (int token = 0; token < vocabulary; token++)
            logs.push_back(row[token] - std::log(sum));
        return logs;
    }
};

// Returns the likeliest token of a sentence: end_token or a free one.
int likeliest(const std::vector<double>& logs) {
    return static_cast<int>(std::max_element(logs.begin() + end_token, logs.end()) - logs.begin());
}

const std::vector<std::vector<int>> sources{{4, 5, 6, 7}, {8}, {6, 6, 5}, {7, 4}, {5}};

}  // namespace

TEST_CASE("translate: greedy takes the likeliest token each time, whatever else is in the batch") {
    Untrained untrained;
    const auto translations = translate(untrained.model, sources, {.beam = 1, .longest = 6});
    REQUIRE(translations.size() == sources.size());
    for (std::size_t i = 0; i < sources.size(); i++) {
        std::vector<int> expected;
        while (expected.size() < 6) {
            const int token = likeliest(untrained.next(sources[i], expected));
            if (token == end_token)
                break;
            expected.push_back(token);
        }
        CAPTURE(i);
        REQUIRE(translations[i] == expected);
    }
}

TEST_CASE("translate: a beam that keeps everything finds the best of all sentences") {
    Untrained untrained;
    const auto score = [](double log, std::size_t length) {
        return log / std::pow((5.0 + static_cast<double>(length)) / 6, 0.6);
    };
    for (const auto& source : sources) {
        // All sentences of no, one and two tokens, behind which end_token comes.
        std::vector<std::vector<int>> sentences{{}};
        for (int first = unknown_token; first < vocabulary; first++) {
            sentences.push_back({first});
            for (int second = unknown_token; second < vocabulary; second++)
                sentences.push_back({first, second});
        }
        std::vector<int> best;
        double best_score = -1e9;
        for (std::vector<int> sentence : sentences) {
            double log = 0;
            std::vector<int> before;
            sentence.push_back(end_token);
            for (const int token : sentence) {
                log += untrained.next(source, before)[static_cast<std::size_t>(token)];
                before.push_back(token);
            }
            sentence.pop_back();
            if (score(log, sentence.size()) > best_score) {
                best_score = score(log, sentence.size());
                best = sentence;
            }
        }
        REQUIRE(translate(untrained.model, {source}, {.beam = 1000, .longest = 3}).front() == best);
    }
    REQUIRE_THROWS_AS(translate(untrained.model, sources, {.beam = 0}), std::invalid_argument);
}

TEST_CASE("translate: sentences that are dealt to the ranks come back in their order") {
    class Letters : public Tokenizer {
      public:
        std::vector<int> encode(const std::string& sentence) const override {
            std::vector<int> tokens;
            for (const char letter : sentence)
                tokens.push_back(letter - 'a' + first_free_token);
            return tokens;
        }
        std::string decode(const std::vector<int>& tokens) const override {
            std::string sentence;
            for (const int token : tokens)
                sentence += static_cast<char>('a' + token - first_free_token);
            return sentence;
        }
        int size() const override { return vocabulary; }
        std::string to_json() const override { return ""; }
    };
    const std::vector<std::string> sentences{"abcd", "e", "ccb", "da", "b", "ae", "c"};
    std::vector<std::string> alone;
    for (const int ranks : {1, 3, 8}) {
        World world(thread_options(ranks));
        world.run([&](Rank& rank) {
            Untrained untrained;
            const auto translated =
                translate_on_all_ranks(rank, untrained.model, Letters(), sentences, {.longest = 6});
            if (rank.rank() == 0 && ranks == 1)
                alone = translated;
            if (translated != alone)
                throw std::runtime_error("another order");
        });
    }
    REQUIRE(alone.size() == sentences.size());
    REQUIRE(std::set(alone.begin(), alone.end()).size() > 2);
}

}  // namespace ddp::test
