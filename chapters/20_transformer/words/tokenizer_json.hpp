#pragma once
// The files of tokenizers, as JSON:
//
//     {"tokenizer": "byte pairs", "merges": [[105, 114], [120, 260], ...]}
//     {"tokenizer": "words", "words": ["the", "of", ...]}
//
// Only the form is checked here; what the numbers and words mean, the tokenizers know.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "20_transformer/words/tokenizer.hpp"

namespace ddp {

std::string merges_to_json(const std::vector<std::pair<int, int>>& merges);
std::string words_to_json(const std::vector<std::string>& words);

// Return what the two above have written. Throw DataError, with one sentence, for any other text.
std::vector<std::pair<int, int>> merges_from_json(const std::string& json);
std::vector<std::string> words_from_json(const std::string& json);

// Returns the tokenizer that has written this text. Throws DataError if none has.
std::unique_ptr<Tokenizer> tokenizer_from_json(const std::string& json);

// Throws the DataError of a tokenizer's file; `how` completes its sentence.
[[noreturn]] void refuse_tokenizer(const std::string& how);

}  // namespace ddp
