//     the cat's tail, 9 lives     ->     the  cat  '  s  tail  ,  9  lives
//
// Words are runs of letters, digits and underscores (a byte above 127 belongs to a letter); other
// runs without a space are punctuation.
#include "20_transformer/words/word_tokenizer.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <stdexcept>

#include "20_transformer/words/tokenizer_json.hpp"
#include "20_transformer/words/utf8.hpp"

namespace ddp {
namespace {

enum class LetterKind { space, word, punctuation };

LetterKind kind_of(char letter) {
    const auto byte = static_cast<std::uint8_t>(letter);
    if (std::isspace(byte))
        return LetterKind::space;
    return byte >= 0x80 || byte == '_' || std::isalnum(byte) ? LetterKind::word
                                                             : LetterKind::punctuation;
}

std::vector<std::string> words_and_punctuation(const std::string& sentence) {
    std::vector<std::string> words;
    LetterKind before = LetterKind::space;
    for (const char letter : sentence) {
        const LetterKind kind = kind_of(letter);
        if (kind != LetterKind::space) {
            if (kind != before)
                words.emplace_back();
            words.back() += letter;
        }
        before = kind;
    }
    return words;
}

}  // namespace

WordTokenizer::WordTokenizer(std::vector<std::string> words) : words_(std::move(words)) {
    for (const std::string& word : words_)
        token_of_.emplace(word, first_free_token + static_cast<int>(token_of_.size()));
}

WordTokenizer WordTokenizer::learn(const std::vector<std::string>& sentences, int vocabulary) {
    if (vocabulary <= first_free_token)
        throw std::invalid_argument("a vocabulary of " + std::to_string(vocabulary) +
                                    " has no room for a word");
    std::map<std::string, int> count_of;
    for (const std::string& sentence : sentences)
        for (const std::string& word : words_and_punctuation(sentence))
            count_of[word]++;
    std::vector<std::string> words;
    for (const auto& [word, count] : count_of)
        if (count >= 2 && is_utf8(word))  // JSON holds nothing else
            words.push_back(word);
    // The most frequent first; words of the same count keep the alphabet's order.
    std::ranges::stable_sort(words, std::ranges::greater(),
                             [&](const std::string& word) { return count_of[word]; });
    words.resize(std::min(words.size(), static_cast<std::size_t>(vocabulary - first_free_token)));
    return WordTokenizer(std::move(words));
}

WordTokenizer WordTokenizer::from_json(const std::string& json) {
    WordTokenizer tokenizer(words_from_json(json));
    if (tokenizer.token_of_.size() != tokenizer.words_.size())
        refuse_tokenizer("has a word twice");
    return tokenizer;
}

std::string WordTokenizer::to_json() const {
    return words_to_json(words_);
}

std::vector<int> WordTokenizer::encode(const std::string& sentence) const {
    std::vector<int> tokens;
    for (const std::string& word : words_and_punctuation(sentence)) {
        const auto place = token_of_.find(word);
        tokens.push_back(place == token_of_.end() ? unknown_token : place->second);
    }
    return tokens;
}

std::string WordTokenizer::decode(const std::vector<int>& tokens) const {
    std::string sentence;
    for (const int token : tokens) {
        if (token < 0 || token >= size())
            throw std::out_of_range("there is no token " + std::to_string(token) +
                                    " in a vocabulary of " + std::to_string(size()));
        if (token == pad_token || token == begin_token || token == end_token)
            continue;
        sentence += sentence.empty() ? "" : " ";
        sentence += token == unknown_token
                        ? unknown_spelling
                        : words_[static_cast<std::size_t>(token - first_free_token)];
    }
    return sentence;
}

}  // namespace ddp
