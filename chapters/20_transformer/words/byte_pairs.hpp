#pragma once
// Byte-pair encoding: a vocabulary of pieces of words, between single letters, of which a sentence
// has many, and whole words, of which a language has too many. (Gage, 1994, for compression;
// Sennrich, Haddow and Birch, 2016, for translation; on bytes: Radford et al., 2019.)
//
//     const BytePairs pairs = BytePairs::learn(sentences, 8000);
//     pairs.decode(pairs.encode("ventitré")) == "ventitré"
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "20_transformer/words/tokenizer.hpp"

namespace ddp {

// Two tokens that become one wherever they are neighbours.
using Merge = std::pair<int, int>;

class BytePairs : public Tokenizer {
  public:
    // The vocabulary without a merge: the special tokens, and one token for every byte. So no text
    // is unknown, in whatever language.
    static constexpr int bytes_only = first_free_token + 256;

    // Learns merges from the sentences of both languages until there are `vocabulary` tokens, or no
    // pair comes twice. The same sentences give the same merges in any order. Throws
    // std::invalid_argument if the vocabulary is below bytes_only or above a million.
    static BytePairs learn(const std::vector<std::string>& sentences, int vocabulary);
    // Makes the tokenizer again. Throws DataError if the text is not what to_json has written.
    static BytePairs from_json(const std::string& json);

    std::vector<int> encode(const std::string& sentence) const override;
    // Returns the bytes of all tokens. The tokens of a whole sentence give the sentence; others may
    // end in the middle of a character, and then the text is not UTF-8.
    std::string decode(const std::vector<int>& tokens) const override;
    int size() const override { return static_cast<int>(spelling_.size()); }
    std::string to_json() const override;

    // Merge i makes token bytes_only + i.
    const std::vector<Merge>& merges() const { return merges_; }
    // Returns the bytes that a token stands for. Throws std::out_of_range if there is no such
    // token.
    const std::string& spelling(int token) const;

  private:
    BytePairs();  // without merges
    void add(const Merge& merge);
    std::vector<int> encode_word(const std::string& word) const;

    // The words that were encoded before. A language repeats its words, so few are encoded twice.
    struct Cache;

    std::vector<Merge> merges_;
    std::unordered_map<std::uint64_t, int> merged_;  // what a pair becomes
    std::vector<std::string> spelling_;              // of each token
    std::shared_ptr<Cache> cache_;                   // copies have the same merges, and share it
};

}  // namespace ddp
