#include "20_transformer/words/tokenizer_json.hpp"

#include <limits>
#include <nlohmann/json.hpp>

#include "20_transformer/words/byte_pairs.hpp"
#include "20_transformer/words/word_tokenizer.hpp"
#include "common/data/file.hpp"

namespace ddp {
namespace {

using TokenizerJson = nlohmann::ordered_json;

const std::string pairs_kind = "byte pairs", words_kind = "words";

// Returns the object that `text` holds.
TokenizerJson parsed_tokenizer(const std::string& text) {
    const auto is_flat = [](int depth, TokenizerJson::parse_event_t, TokenizerJson&) {
        if (depth > 3)
            refuse_tokenizer("is nested too deeply");
        return true;
    };
    TokenizerJson json;
    try {
        json = TokenizerJson::parse(text, is_flat);
    } catch (const TokenizerJson::exception&) {  // DataError is none, and passes
        refuse_tokenizer("is not JSON");
    }
    if (!json.is_object() || !json.contains("tokenizer") || !json["tokenizer"].is_string())
        refuse_tokenizer("does not say which tokenizer it is");
    return json;
}

// Returns the array of that name, from the file of a tokenizer of that kind.
TokenizerJson array_of(const std::string& text, const std::string& kind, const char* name) {
    TokenizerJson json = parsed_tokenizer(text);
    if (json["tokenizer"] != kind)
        refuse_tokenizer("belongs to another tokenizer than '" + kind + "'");
    if (!json.contains(name) || !json[name].is_array())
        refuse_tokenizer(std::string("has no ") + name);
    return json[name];
}

int token_number(const TokenizerJson& number) {
    if (!number.is_number_unsigned() ||
        number.get<std::uint64_t>() > std::numeric_limits<int>::max())
        refuse_tokenizer("has a merge that is not two numbers of tokens");
    return number.get<int>();
}

}  // namespace

void refuse_tokenizer(const std::string& how) {
    throw DataError(printable("the file of a tokenizer " + how +
                              ": take the one that was saved with the model."));
}

std::string merges_to_json(const std::vector<std::pair<int, int>>& merges) {
    TokenizerJson json{{"tokenizer", pairs_kind}, {"merges", TokenizerJson::array()}};
    for (const auto& [left, right] : merges)
        json["merges"].push_back({left, right});
    return json.dump();
}

std::string words_to_json(const std::vector<std::string>& words) {
    return TokenizerJson{{"tokenizer", words_kind}, {"words", words}}.dump();
}

std::vector<std::pair<int, int>> merges_from_json(const std::string& json) {
    std::vector<std::pair<int, int>> merges;
    for (const TokenizerJson& merge : array_of(json, pairs_kind, "merges")) {
        if (!merge.is_array() || merge.size() != 2)
            refuse_tokenizer("has a merge that is not two numbers of tokens");
        merges.emplace_back(token_number(merge[0]), token_number(merge[1]));
    }
    return merges;
}

std::vector<std::string> words_from_json(const std::string& json) {
    std::vector<std::string> words;
    for (const TokenizerJson& word : array_of(json, words_kind, "words")) {
        if (!word.is_string())
            refuse_tokenizer("has a word that is not a text");
        words.push_back(word.get<std::string>());
    }
    return words;
}

std::unique_ptr<Tokenizer> tokenizer_from_json(const std::string& json) {
    const std::string kind = parsed_tokenizer(json)["tokenizer"];
    if (kind == pairs_kind)
        return std::make_unique<BytePairs>(BytePairs::from_json(json));
    if (kind == words_kind)
        return std::make_unique<WordTokenizer>(WordTokenizer::from_json(json));
    refuse_tokenizer("is of the kind '" + kind + "', which is not known here");
}

}  // namespace ddp
