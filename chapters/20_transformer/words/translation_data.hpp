#pragma once
// The plan of a training, and the sentences for it as tokens.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "05_ranks/world.hpp"
#include "19_checkpoint_failover/checkpointed_run.hpp"
#include "20_transformer/transformer.hpp"
#include "20_transformer/words/pairs.hpp"
#include "20_transformer/words/token_batches.hpp"
#include "20_transformer/words/tokenizer.hpp"

namespace ddp {

// The number by which a rank divides the sum of its tokens' losses. DDP averages the ranks'
// results.
//
//     all_tokens   the tokens of all ranks / the number of ranks: the mean over all tokens
//     own_tokens   its own tokens: the mean of the ranks' means, in which a token counts for more
//                  where there are fewer of them
enum class Divisor { all_tokens, own_tokens };

struct TranslationPlan {
    TransformerOptions model;  // all but the vocabulary, which is the tokenizer's
    std::string tokenizer = "bytes";
    int vocabulary = 400;  // the most tokens that the tokenizer learns
    int epochs = 1;
    int batch = 64;               // sentences of a global batch, of all ranks together
    int accumulate = 1;           // global batches of a step
    double learning_rate = 5e-3;  // the highest, at the end of the warm-up
    int warm_up = 100;            // steps
    double smoothing = 0.0;       // of the labels
    double clip = 1.0;            // the longest gradient
    Divisor divisor = Divisor::all_tokens;
    bool compresses = false;  // whether gradients travel as bfloat16
    std::string communicator = "native";
    std::uint64_t seed = 1;
    int report_every = 10;  // steps between two reports, each of which waits for the device
    CheckpointPlan checkpoints;
};

// The sentences as tokens, made once in each process of a job.
struct TranslationData {
    PairCorpus corpus;  // its test split without the pairs that are too long for the model
    std::unique_ptr<Tokenizer> tokenizer;
    std::vector<TokenPair> train, valid;  // without them, too
    int too_long = 0;                     // how many these two leave out
};

// Learns the tokenizer from the training split on rank 0, broadcasts it, and encodes the sentences.
// All processes of the job call it together, with the same corpus. Throws OptionError if there are
// fewer pairs than a global batch takes.
TranslationData encode_corpus(World& world, PairCorpus corpus, const TranslationPlan& plan);

// Returns the most places, sentences x length, that the rank's share of a batch can have, of either
// split.
std::size_t max_places(const Rank& rank, const TranslationData& data, const TranslationPlan& plan);

// Returns what makes a training with this plan and these sentences differ from others, for its
// checkpoints.
std::map<std::string, std::string> configuration_of(const TranslationPlan& plan,
                                                    const TranslationData& data);
// The entry of a checkpoint's configuration that holds the tokenizer, as JSON.
inline const std::string tokenizer_entry = "tokenizer";
// The one that says which model it is, and what it says of one without an encoder.
inline const std::string model_entry = "model", decoder_only_model = "decoder only";
// Throws OptionError unless the configuration holds the tokenizer of these sentences. (Equal
// sentences give equal tokenizers, so only another corpus of the same name and size can have given
// a different one.)
void require_same_tokenizer(const std::map<std::string, std::string>& configuration,
                            const TranslationData& data);

}  // namespace ddp
