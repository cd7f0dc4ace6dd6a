#pragma once
// The program's options, and the sentences, sizes and folder that they ask for.
#include <filesystem>
#include <optional>
#include <string>

#include "05_ranks/world.hpp"
#include "20_transformer/translation_training.hpp"
#include "common/report/options.hpp"

namespace ddp {

// The chapter's options. Numbers that are 0, and those that are not given, are replaced by what
// suits the sentences: numbers in words take a small model, real sentences a larger one.
struct TranslationSettings {
    std::string pairs = "numerals", folder, tokenizer = "bytes";
    std::optional<std::string> translate;  // a sentence, in the place of a training
    int sentences = 0, epochs = 0, batch = 0, accumulate = 1;
    int width = 0, layers = 0, heads = 4, vocabulary = 0, warm_up = 0, every = 100, beam = 1;
    std::optional<double> learning_rate, dropout, smoothing;
    double clip = 1.0;
    bool post_norm = false, untied = false, decoder_only = false, own_tokens = false,
         compresses = false;
    bool five_only = false, train_only = false;
    std::string communicator = "native";
};
void add_translation_options(Options& parser, TranslationSettings& settings);

// Loads the sentences that --pairs names.
PairCorpus load_corpus(const TranslationSettings& settings, const CommonOptions& common);

// Returns the folder of a run that was given none: beside what it measures, where --translate finds
// it. Empty if nothing is written.
std::filesystem::path usual_folder(const CommonOptions& common);

// Returns the run's folder, which may be empty. A run without --folder begins anew: it removes the
// checkpoints that the last one has left in the usual folder.
std::filesystem::path begin_folder(World& world, const TranslationSettings& settings,
                                   const CommonOptions& common);

// Returns the plan that the options describe; `folder` is for the checkpoints.
TranslationPlan plan_of(const TranslationSettings& settings, const CommonOptions& common,
                        const std::filesystem::path& folder);

}  // namespace ddp
