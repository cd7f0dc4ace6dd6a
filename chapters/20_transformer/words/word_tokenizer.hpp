#pragma once
// The simple tokenizer: a token is a word, or a run of punctuation. It keeps the words that the
// training sentences have twice or more, and loses the others ("[UNK]"), the spaces (a decoded
// sentence has one between any two tokens) and with a small vocabulary most names and numbers.
#include <string>
#include <unordered_map>
#include <vector>

#include "20_transformer/words/tokenizer.hpp"

namespace ddp {

class WordTokenizer : public Tokenizer {
  public:
    // Takes the most frequent words of the sentences, but none that comes only once, until there
    // are `vocabulary` tokens. Throws std::invalid_argument if that leaves no room for a word.
    static WordTokenizer learn(const std::vector<std::string>& sentences, int vocabulary);
    // Makes the tokenizer again. Throws DataError if the text is not what to_json has written.
    static WordTokenizer from_json(const std::string& json);

    std::vector<int> encode(const std::string& sentence) const override;
    std::string decode(const std::vector<int>& tokens) const override;
    int size() const override { return first_free_token + static_cast<int>(words_.size()); }
    std::string to_json() const override;

  private:
    explicit WordTokenizer(std::vector<std::string> words);

    std::vector<std::string> words_;  // word i is token first_free_token + i
    std::unordered_map<std::string, int> token_of_;
};

}  // namespace ddp
