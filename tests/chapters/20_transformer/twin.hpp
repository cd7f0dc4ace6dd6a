#pragma once
// The training that PyTorch makes as well: a small transformer of chapter 20 on numerals, without
// dropout, and its input for the reference run (tests/golden/transformer_reference.py).
#include <filesystem>

#include "20_transformer/words/translation_data.hpp"

namespace ddp::test {

inline constexpr int twin_steps = 50;

TranslationPlan twin_plan();
PairCorpus twin_corpus();

// Writes everything that the reference run needs as text: the plan, the weights, the pairs and
// which of them are in each batch; for its translations the held-out sources, with references, and
// the bytes of each token.
void write_reference_input(const std::filesystem::path& path, const PairCorpus& corpus,
                           const TranslationPlan& plan);

// Returns the losses of the reference run, one for each step.
std::vector<double> reference_losses();

}  // namespace ddp::test
