#pragma once
// The interface of every tokenizer: it turns a sentence into whole numbers, which a model can look
// up, and back.
#include <string>
#include <vector>

namespace ddp {

// The special tokens, with the same numbers in every tokenizer. No sentence holds them: batches pad
// with the first and mark a sentence's two ends with the next two; the last one stands for a word
// that a vocabulary does not have.
inline constexpr int pad_token = 0;
inline constexpr int begin_token = 1;
inline constexpr int end_token = 2;
inline constexpr int unknown_token = 3;
inline constexpr int first_free_token = 4;
inline const std::string unknown_spelling = "[UNK]";

class Tokenizer {
  public:
    virtual ~Tokenizer() = default;

    // Returns the tokens of a sentence, without begin and end. Several threads may call it at once.
    virtual std::vector<int> encode(const std::string& sentence) const = 0;
    // Returns the sentence that these tokens spell. Padding, begin and end are left out, and an
    // unknown word is unknown_spelling. Throws std::out_of_range for a number that is no token.
    virtual std::string decode(const std::vector<int>& tokens) const = 0;
    // Returns the number of tokens, the special ones included: each is below it.
    virtual int size() const = 0;
    // Returns everything that from_json of the same class needs to make this tokenizer again.
    virtual std::string to_json() const = 0;
};

}  // namespace ddp
