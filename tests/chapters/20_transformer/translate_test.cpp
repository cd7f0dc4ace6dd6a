// The search: greedy takes the likeliest token each time, a wide beam finds the likeliest sentence,
// and no beam finds a worse one than greedy.
#include "20_transformer/translate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>

#include "20_transformer/layers/decoding.hpp"
#include "20_transformer/translation_training.hpp"
#include "20_transformer/words/translation_options.hpp"
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
        const DeviceBatch on_device = to_device(device, batch);
        const std::vector<float> scores =
            model.forward(tape, on_device.source, on_device.target_in).value().to_host();
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

// What the search compares: the logarithm of the probability of a sentence of `length` tokens and
// end_token, divided by a power of its length.
double score_of(double log, std::size_t length) {
    return log / std::pow((5.0 + static_cast<double>(length)) / 6, 0.6);
}

// Returns the score of each sentence as a translation of its source, by one forward of all of them.
std::vector<double> scores_of(TranslationModel& model, const std::vector<std::vector<int>>& sources,
                              const std::vector<std::vector<int>>& sentences) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < sources.size(); i++)
        length = std::max({length, sources[i].size() + 1, sentences[i].size() + 1});
    TokenBatch batch;
    batch.sentences = static_cast<int>(sources.size());
    batch.length = static_cast<int>(length);
    for (std::size_t i = 0; i < sources.size(); i++) {
        const std::size_t row = (i + 1) * length;
        batch.source.insert(batch.source.end(), sources[i].begin(), sources[i].end());
        batch.source.push_back(end_token);
        batch.source.resize(row, pad_token);
        batch.target_in.push_back(begin_token);
        batch.target_in.insert(batch.target_in.end(), sentences[i].begin(), sentences[i].end());
        batch.target_in.resize(row, pad_token);
    }
    Device& device = model.parameters().front()->value.device();
    Tape tape(device);
    const DeviceBatch on_device = to_device(device, batch);
    const std::vector<float> all =
        model.forward(tape, on_device.source, on_device.target_in).value().to_host();
    const auto tokens = static_cast<std::size_t>(model.options().vocabulary);
    std::vector<double> scores;
    for (std::size_t i = 0; i < sources.size(); i++) {
        double log = 0;
        for (std::size_t k = 0; k <= sentences[i].size(); k++) {
            const float* row = all.data() + (i * length + k) * tokens;
            double sum = 0;
            for (std::size_t token = 0; token < tokens; token++)
                sum += std::exp(row[token]);
            const int token = k < sentences[i].size() ? sentences[i][k] : end_token;
            log += row[token] - std::log(sum);
        }
        scores.push_back(score_of(log, sentences[i].size()));
    }
    return scores;
}

// For each token, how likely others are behind it.
using NextTokens = std::map<int, std::map<int, double>>;

// A model whose next token depends on the last one only, with given probabilities. All parts of the
// decoder but its last norm are zero, so nothing is added to the embedding of the last token, which
// is 1 in a column of its own, times so much that positions are nothing beside it. The norm makes
// of it (width - 1) / sqrt(width - 1) in that column and -1 / sqrt(width - 1) in the others, and
// the output's row of token v is such that this becomes the logarithm of v's probability. (One more
// column makes each row's sum 0.)
struct Chain {
    static constexpr int width = 32;
    Device device;
    DropoutMasks masks{1};
    Random random{7};
    Transformer model;

    Chain(const NextTokens& next, int tokens)
        : model(device,
                {.vocabulary = tokens,
                 .width = width,
                 .heads = 1,
                 .layers = 1,
                 .feed_forward = 2,
                 .longest = 12,
                 .tie_embeddings = false},
                random, masks) {
        model.set_training(false);
        std::vector<float> embedding(static_cast<std::size_t>(tokens * width));
        std::vector<float> output(embedding.size());
        for (int last = 0; last < tokens; last++) {
            embedding.at(static_cast<std::size_t>(last * width + last)) = 1e5f;
            for (int v = 0; v < tokens; v++) {
                const auto row = next.find(last);
                const bool is_likely = row != next.end() && row->second.contains(v);
                const double log = std::log(is_likely ? row->second.at(v) : 1e-12);
                const auto share = static_cast<float>(log * std::sqrt(width - 1.0) / width);
                output.at(static_cast<std::size_t>(v * width + last)) += share;
                output.at(static_cast<std::size_t>(v * width + tokens)) -= share;
            }
        }
        for (const auto& parameter : model.parameters()) {
            if (parameter->name == "target_embedding.weight")
                parameter->value.copy_from(embedding);
            else if (parameter->name == "output.weight")
                parameter->value.copy_from(output);
            else if (parameter->name != "decoder.norm.weight")
                parameter->value.copy_from(std::vector<float>(parameter->value.size(), 0.0f));
        }
    }

    std::vector<int> translate(int beam) {
        return ddp::translate(model, {{first_free_token}}, {.beam = beam, .longest = 8}).front();
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
            if (score_of(log, sentence.size()) > best_score) {
                best_score = score_of(log, sentence.size());
                best = sentence;
            }
        }
        REQUIRE(translate(untrained.model, {source}, {.beam = 1000, .longest = 3}).front() == best);
    }
    REQUIRE_THROWS_AS(translate(untrained.model, sources, {.beam = 0}), std::invalid_argument);
}

TEST_CASE("translate: bad sentences that have ended do not end the search for a better one") {
    // Behind each token of the sentence an end is possible, and the next token much likelier.
    const int a = first_free_token, b = a + 1, c = a + 2, d = a + 3;
    Chain chain({{begin_token, {{a, 0.94}, {end_token, 0.05}}},
                 {a, {{b, 0.95}, {end_token, 0.04}}},
                 {b, {{c, 0.93}, {end_token, 0.05}}},
                 {c, {{d, 0.95}, {end_token, 0.03}}},
                 {d, {{end_token, 0.99}}}},
                d + 1);
    for (int beam = 1; beam <= 8; beam++) {
        CAPTURE(beam);
        REQUIRE(chain.translate(beam) == std::vector{a, b, c, d});
    }
}

TEST_CASE("translate: a candidate is final only when no longer sentence can have a better score") {
    // The short sentence is the likelier one, 0.5 and 0.45, and the long one has the better score.
    const int a = first_free_token, b = a + 1, c = a + 2, d = a + 3;
    Chain chain({{begin_token, {{end_token, 0.5}, {a, 0.45}}},
                 {a, {{b, 1.0}}},
                 {b, {{c, 1.0}}},
                 {c, {{d, 1.0}}},
                 {d, {{end_token, 1.0}}}},
                d + 1);
    REQUIRE(score_of(std::log(0.5), 0) < score_of(std::log(0.45), 4));
    REQUIRE(chain.translate(1).empty());  // greedy ends with the likeliest token, which is the end
    for (int beam = 2; beam <= 8; beam++) {
        CAPTURE(beam);
        REQUIRE(chain.translate(beam) == std::vector{a, b, c, d});
    }
}

TEST_CASE("translate: a narrow beam that loses greedy's row still finds greedy's sentence") {
    // Behind `x` and behind `y` there are eight tokens, all equally likely. A beam of two follows
    // z y and z w, each of 0.15, and not x and one of the eight, which is 0.05; later each of its
    // rows splits into eight.
    const int x = first_free_token, z = x + 1, y = x + 2, w = x + 3, one = x + 4;
    std::map<int, double> eight;
    NextTokens next{{begin_token, {{x, 0.4}, {z, 0.3}}}, {z, {{y, 0.5}, {w, 0.5}}}};
    for (int i = 0; i < 8; i++) {
        eight[one + i] = 0.125;
        next[one + i] = {{end_token, 1.0}};
    }
    next[x] = next[y] = next[w] = eight;
    Chain chain(next, one + 8);
    const std::vector<int> greedy = chain.translate(1);
    REQUIRE(greedy.size() == 2);
    REQUIRE(greedy.front() == x);
    REQUIRE(score_of(std::log(0.4 * 0.125), 2) > score_of(std::log(0.3 * 0.5 * 0.125), 3));
    for (int beam = 2; beam <= 8; beam++) {
        CAPTURE(beam);
        REQUIRE(chain.translate(beam).front() == x);
    }
}

TEST_CASE("translate: no beam finds a worse sentence than greedy") {
    Untrained untrained;
    constexpr std::size_t longest = 9;
    const auto greedy = translate(untrained.model, sources, {.beam = 1, .longest = longest});
    REQUIRE(std::ranges::any_of(
        greedy, [&](const std::vector<int>& sentence) { return sentence.size() < longest; }));
    const std::vector<double> least = scores_of(untrained.model, sources, greedy);
    for (int beam = 2; beam <= 8; beam++) {
        const auto found = translate(untrained.model, sources, {.beam = beam, .longest = longest});
        const std::vector<double> scores = scores_of(untrained.model, sources, found);
        for (std::size_t i = 0; i < sources.size(); i++) {
            CAPTURE(beam, i);
            if (greedy[i].size() < longest)  // it has ended, and was not cut off
                REQUIRE(scores[i] >= least[i] - 1e-5);
        }
    }
}

TEST_CASE("translate: after a training no beam is worse than greedy on 1,000 held-out numbers",
          "[.weekly]") {
    constexpr int ranks = 2, most = 8;
    const CommonOptions common;
    const TranslationSettings settings;
    const TranslationPlan plan = plan_of(settings, common, {});
    World world(thread_options(ranks));
    const TranslationData data = encode_corpus(world, load_corpus(settings, common), plan);
    REQUIRE(data.corpus.test.size() == 1000);
    std::array<std::array<int, most + 1>, ranks> right{}, below{};
    world.run([&](Rank& rank) {
        const auto r = static_cast<std::size_t>(rank.rank());
        train_translation(rank, data, plan, {}, [&](TranslationModel& model) {
            std::vector<std::vector<int>> sources;
            std::vector<std::string> expected;
            for (std::size_t i = r; i < data.corpus.test.size(); i += ranks) {
                sources.push_back(data.tokenizer->encode(data.corpus.test[i].source));
                expected.push_back(data.corpus.test[i].target);
            }
            std::vector<double> least;
            for (std::size_t beam = 1; beam <= most; beam++) {
                const auto found = translate(model, sources, {.beam = static_cast<int>(beam)});
                const std::vector<double> scores = scores_of(model, sources, found);
                if (beam == 1)
                    least = scores;
                for (std::size_t i = 0; i < sources.size(); i++) {
                    right[r][beam] += data.tokenizer->decode(found[i]) == expected[i];
                    below[r][beam] += scores[i] < least[i] - 1e-4;
                }
            }
        });
    });
    for (std::size_t beam = 1; beam <= most; beam++) {
        CAPTURE(beam);
        REQUIRE(below[0][beam] + below[1][beam] == 0);
        REQUIRE(right[0][beam] + right[1][beam] >= 990);
    }
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
