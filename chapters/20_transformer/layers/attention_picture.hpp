#pragma once
// Shows where the model looks while it translates: the attention of its last layer to the
// source.
#include <filesystem>
#include <string>
#include <vector>

#include "20_transformer/transformer.hpp"
#include "20_transformer/words/tokenizer.hpp"

namespace ddp {

// Translates the first three sentences, and writes to the CSV file beside `csv`, if that is not
// empty, how much each token of a translation takes of each token of its source, in the step that
// chooses it: the mean over the heads. `model` is in evaluation.
void write_attention(const std::filesystem::path& csv, TranslationModel& model,
                     const Tokenizer& tokenizer, const std::vector<std::string>& sentences);

}  // namespace ddp
