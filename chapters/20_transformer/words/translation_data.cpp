#include "20_transformer/words/translation_data.hpp"

#include <algorithm>

#include "20_transformer/words/byte_pairs.hpp"
#include "20_transformer/words/tokenizer_json.hpp"
#include "20_transformer/words/word_tokenizer.hpp"
#include "common/report/options.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

std::unique_ptr<Tokenizer> learn_tokenizer(const PairCorpus& corpus, const TranslationPlan& plan) {
    std::vector<std::string> sentences;
    for (const SentencePair& pair : corpus.train) {
        sentences.push_back(pair.source);
        sentences.push_back(pair.target);
    }
    if (plan.tokenizer == "words")
        return std::make_unique<WordTokenizer>(WordTokenizer::learn(sentences, plan.vocabulary));
    return std::make_unique<BytePairs>(BytePairs::learn(sentences, plan.vocabulary));
}

TokenPair encode(const SentencePair& pair, const Tokenizer& tokenizer) {
    return {tokenizer.encode(pair.source), tokenizer.encode(pair.target)};
}

// Returns whether each side and the token that marks its end have a position in the model.
bool fits(const TokenPair& tokens, int longest) {
    return std::max(tokens.source.size(), tokens.target.size()) < static_cast<std::size_t>(longest);
}

// Encodes the pairs that fit, and counts the others.
std::vector<TokenPair> encode(const std::vector<SentencePair>& pairs, const Tokenizer& tokenizer,
                              int longest, int& too_long) {
    std::vector<TokenPair> encoded;
    for (const SentencePair& pair : pairs) {
        TokenPair tokens = encode(pair, tokenizer);
        if (fits(tokens, longest))
            encoded.push_back(std::move(tokens));
        else
            too_long++;
    }
    return encoded;
}

void require_enough(std::size_t pairs, const std::string& split, int needed) {
    if (pairs < static_cast<std::size_t>(needed))
        throw OptionError("The " + split + " split has " + format_count(pairs, "pair") + " that " +
                          (pairs == 1 ? "is" : "are") + " short enough, and " +
                          std::to_string(needed) +
                          " are needed: take a smaller --batch, fewer ranks, or more sentences.");
}

}  // namespace

TranslationData encode_corpus(World& world, PairCorpus corpus, const TranslationPlan& plan) {
    TranslationData data;
    data.corpus = std::move(corpus);
    world.run([&](Rank& rank) {
        const std::string json = rank.broadcast(
            rank.rank() == 0 ? learn_tokenizer(data.corpus, plan)->to_json() : std::string(), 0);
        // Once in each process: the ranks that are threads share the sentences.
        if (!rank.job().has_processes && rank.rank() != 0)
            return;
        data.tokenizer = tokenizer_from_json(json);
        data.train = encode(data.corpus.train, *data.tokenizer, plan.model.longest, data.too_long);
        data.valid = encode(data.corpus.valid, *data.tokenizer, plan.model.longest, data.too_long);
        std::erase_if(data.corpus.test, [&](const SentencePair& pair) {
            return !fits(encode(pair, *data.tokenizer), plan.model.longest);
        });
    });
    require_enough(data.train.size(), "training", std::max(plan.batch, world.world_size()));
    require_enough(data.valid.size(), "validation", world.world_size());
    return data;
}

std::size_t max_places(const Rank& rank, const TranslationData& data, const TranslationPlan& plan) {
    const std::size_t texts = plan.model.decoder_only ? 2 : 1;  // of a pair, in one row
    return texts * std::max(max_tokens_of_share(data.train, plan.batch, rank.world_size()),
                            max_tokens_of_share(data.valid, plan.batch, rank.world_size()));
}

std::map<std::string, std::string> configuration_of(const TranslationPlan& plan,
                                                    const TranslationData& data) {
    const TransformerOptions& model = plan.model;
    return {{"corpus", data.corpus.name},
            {"number of pairs", std::to_string(data.train.size())},
            {"kind of tokenizer", plan.tokenizer},
            {"vocabulary", std::to_string(data.tokenizer->size())},
            {"width", std::to_string(model.width)},
            {"heads", std::to_string(model.heads)},
            {"layers", std::to_string(model.layers)},
            {"feed-forward width", std::to_string(model.feed_forward)},
            {"longest sentence", std::to_string(model.longest)},
            {"dropout", format_fixed(model.dropout, 6)},
            {"norm first", model.norm_first ? "1" : "0"},
            {"tied embeddings", model.tie_embeddings ? "1" : "0"},
            {model_entry, model.decoder_only ? decoder_only_model : "encoder and decoder"},
            {"batch", std::to_string(plan.batch)},
            {"accumulate", std::to_string(plan.accumulate)},
            {"learning rate", format_fixed(plan.learning_rate, 9)},
            {"warm-up", std::to_string(plan.warm_up)},
            {"smoothing", format_fixed(plan.smoothing, 6)},
            {"clip", format_fixed(plan.clip, 6)},
            {"divisor", plan.divisor == Divisor::all_tokens ? "all tokens" : "own tokens"},
            {"bfloat16 hook", plan.compresses ? "1" : "0"},
            {"seed", std::to_string(plan.seed)}};
}

void require_same_tokenizer(const std::map<std::string, std::string>& configuration,
                            const TranslationData& data) {
    if (configuration.at(tokenizer_entry) != data.tokenizer->to_json())
        throw OptionError(
            "The checkpoint's tokenizer was learned from other sentences: give "
            "--folder another folder.");
}

}  // namespace ddp
