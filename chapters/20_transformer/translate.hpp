#pragma once
// Translates with a trained transformer, token by token. The scores say how likely each token is to
// come next; the search decides which sentence that makes.
//
//     greedy (a beam of 1)    always the likeliest next token
//     beam of 3               the 3 likeliest beginnings, each tried with every next token:
//
//         begin ── due ──── duecento ─── duecentouno ── end      -0.3   <- the likeliest sentence
//              ├── tre ──── trecento ✗ (not among the best 3)
//              └── cento ── centouno ─── end                    -2.9
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "05_ranks/rank.hpp"
#include "20_transformer/transformer.hpp"
#include "20_transformer/words/pairs.hpp"
#include "20_transformer/words/tokenizer.hpp"

namespace ddp {

struct SearchOptions {
    int beam = 1;      // beginnings that are kept of each sentence
    int longest = 64;  // tokens after which a translation is cut off
};

// Returns the best translation that the search finds for each source, without begin and end.
// Candidates of different lengths are compared by their score, log(probability) / ((5 + length) /
// 6)^0.6, or the shortest would win (Wu et al., 2016). No beam returns a sentence with a lower
// score than greedy's. Many sources are translated at the same time; `model` is in evaluation.
// Throws std::invalid_argument if the beam is below 1.
std::vector<std::vector<int>> translate(TranslationModel& model,
                                        const std::vector<std::vector<int>>& sources,
                                        const SearchOptions& options = {});

// Returns the translations of all sentences, which are dealt to the ranks, on every rank: sentence
// i is translated by rank i % world_size. All ranks call it together.
std::vector<std::string> translate_on_all_ranks(Rank& rank, TranslationModel& model,
                                                const Tokenizer& tokenizer,
                                                const std::vector<std::string>& sentences,
                                                const SearchOptions& options = {});

// Sentences that the model has not learned from, and its translations.
struct HeldOut {
    std::vector<std::string> sources, expected, translated;
    double seconds = 0;

    // Returns the counts of a score over all of them: of BleuCounts, for example.
    template <typename Counts>
    Counts counted() const {
        Counts counts;
        for (std::size_t i = 0; i < expected.size(); i++)
            counts.add(translated[i], expected[i]);
        return counts;
    }
    // Returns the first `most` of them.
    HeldOut first(std::size_t most) const;
};
// Translates the pairs' sources. All ranks call it together; the result is the same on all.
HeldOut translate_held_out(Rank& rank, TranslationModel& model, const Tokenizer& tokenizer,
                           std::span<const SentencePair> pairs, const SearchOptions& search);

// A model and its tokenizer, as a training has left them in its newest checkpoint.
class Translator {
  public:
    // Throws OptionError if there is no checkpoint in the folder, and DataError if there is no
    // whole one, or if it is none of a translation.
    explicit Translator(const std::filesystem::path& folder);

    std::string translate(const std::string& sentence, const SearchOptions& options);

    TranslationModel& model() { return *model_; }
    const Tokenizer& tokenizer() const { return *tokenizer_; }
    int step() const { return step_; }  // of the checkpoint

  private:
    Device device_;
    DropoutMasks masks_{0};
    std::unique_ptr<Tokenizer> tokenizer_;
    std::unique_ptr<TranslationModel> model_;
    int step_ = 0;
};

}  // namespace ddp
