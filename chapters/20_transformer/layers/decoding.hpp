#pragma once
// Translating token by token. The encoder runs once; of each token that has been chosen, the keys
// and values are kept, so a new token costs one column and not the whole square:
//
//     scores of the whole target      token 3 alone
//     x . . .                         . . . .
//     x x . .                         . . . .      known from the steps before
//     x x x .                         . . . .
//     x x x x                         x x x x      keys 0 .. 2 kept, key 3 new
#include <vector>

#include "20_transformer/transformer.hpp"

namespace ddp {

class Decoding {
  public:
    // Runs the encoder over the tokens of the sources [sentences, length], padded. `model` must
    // outlive this object and be in evaluation: throws std::logic_error otherwise.
    Decoding(Transformer& model, const Tokens& sources);

    // Takes the last token of each row and returns the scores of the tokens to come next
    // [rows, vocabulary]. New row j goes on with old row from_row[j]: so beam search picks its best
    // rows, some of them twice, and drops the sentences that are done. In the first call the old
    // rows are the sentences, and the last tokens begin_token. Throws std::invalid_argument if the
    // two have other lengths, and std::out_of_range for a row that does not exist.
    Tensor next(const std::vector<int>& last, const std::vector<int>& from_row);

    int rows() const { return static_cast<int>(sentence_of_row_.size()); }
    // Returns how many tokens each row has been given so far, begin_token among them.
    int length() const { return length_; }

  private:
    // Keys and values that a decoder layer keeps, each [rows * tokens, width]: of the target so far
    // and of the source.
    struct Kept {
        Tensor keys, values, source_keys, source_values;
    };

    void pick_sentences(const std::vector<int>& from_row, const Labels& picked);

    Transformer& model_;
    Device& device_;
    std::vector<int> sentence_of_row_;  // the source that each row translates
    const int source_length_;           // with padding
    Labels row_lengths_;                // the source's, by row, without padding
    std::vector<Kept> layers_;
    int length_ = 0;
};

}  // namespace ddp
