#pragma once
// Where the model looks while it translates: the attention of the decoder's last layer to the
// source.
#include <filesystem>
#include <string>
#include <vector>

#include "20_transformer/transformer.hpp"
#include "20_transformer/words/tokenizer.hpp"

namespace ddp {

struct AttentionPicture {
    std::vector<std::string> source, target;  // a text for each token; the last one marks the end
    // For each token of the target, in the step that chooses it, how much is taken of each token of
    // the source: [target, source], the mean over the heads.
    std::vector<std::vector<float>> weights;
};

// Translates the sentence and looks at the attention. `model` is in evaluation.
AttentionPicture attention_of(Transformer& model, const Tokenizer& tokenizer,
                              const std::string& sentence);

// Writes the pictures of the first three sentences to the CSV file beside `csv`, if that is not
// empty.
void write_attention(const std::filesystem::path& csv, Transformer& model,
                     const Tokenizer& tokenizer, const std::vector<std::string>& sentences);

}  // namespace ddp
