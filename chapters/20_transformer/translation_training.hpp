#pragma once
// Trains a transformer on several ranks: the model of this chapter, and everything that the book
// has built for it. Gradients are averaged by DistributedDataParallel (15), clipped, and handed to
// Adam; checkpoints are those of 19, so the training may be killed anywhere and goes on, with as
// many ranks as there are then.
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "05_ranks/world.hpp"
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
    int report_every = 10;         // steps between two reports, each of which waits for the device
    std::filesystem::path folder;  // of the checkpoints; empty: none are made
    int every = 100;               // steps between two checkpoints
    int keep = 2;                  // how many checkpoints stay
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

// Returns the learning rate of step `step`, counted from 1: it grows evenly to its peak at the end
// of the warm-up, and falls then with the root of the step (Vaswani et al., 2017, 5.3).
double learning_rate_at(int step, double peak, int warm_up);

// The training since the last report.
struct StepReport {
    int step = 0, steps = 0;  // made so far, and in the whole plan
    int epoch = 1;
    std::int64_t tokens = 0;       // of the targets, learned from by all ranks in this run
    double loss = 0;               // for a token, over all ranks
    double learning_rate = 0;      // of the last step
    double tokens_per_second = 0;  // of all ranks
};

// The entry of a checkpoint's configuration that holds the tokenizer, as JSON.
inline const std::string tokenizer_entry = "tokenizer";

// The places at which a training is seen. All are called by the rank's own thread, at the same
// places on every rank, with the same values; any may be absent.
struct TranslationHooks {
    // Called before the first step, with the steps that an earlier run has made.
    std::function<void(int steps_before)> on_start = {};
    std::function<void(const StepReport&)> on_step = {};  // every few steps
    // Called after each epoch, with the model in evaluation; `loss` is the validation's, for a
    // token.
    std::function<void(int epoch, int step, double loss, Transformer& model)> on_epoch = {};
};

struct TranslationResult {
    int steps = 0;
    double loss = 0;             // of the last report
    double validation_loss = 0;  // after the last epoch
    double seconds = 0;          // of the steps in this run, without validation
    std::int64_t tokens = 0;     // of the targets in this run
    std::string hash;            // of the parameters, the same on all ranks
};

// Trains on this rank to the end of the plan, from the newest checkpoint if there is one, and calls
// `use` with the model in evaluation at its end. Throws OptionError if the checkpoint is of another
// training, and std::runtime_error if none of them is whole or the loss is no longer a number.
TranslationResult train_translation(Rank& rank, const TranslationData& data,
                                    const TranslationPlan& plan, const TranslationHooks& hooks,
                                    const std::function<void(Transformer& model)>& use);

}  // namespace ddp
