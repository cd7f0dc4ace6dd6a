#pragma once
// Trains a transformer on several ranks: the model of this chapter, and everything that the book
// has built for it. Gradients are averaged by DistributedDataParallel, clipped, and handed to
// Adam; a CheckpointedRun saves it, so the training may be killed anywhere and goes on, with as
// many ranks as there are then.
#include <functional>
#include <string>

#include "20_transformer/transformer.hpp"
#include "20_transformer/words/translation_data.hpp"

namespace ddp {

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

// The places at which a training is seen. All are called by the rank's own thread, at the same
// places on every rank, with the same values; any may be absent.
struct TranslationHooks {
    // Called before the first step, with the steps that an earlier run has made.
    std::function<void(int steps_before)> on_start = {};
    std::function<void(const StepReport&)> on_step = {};  // every few steps
    // Called after each epoch, with the model in evaluation; `loss` is the validation's, for a
    // token.
    std::function<void(int epoch, int step, double loss, TranslationModel& model)> on_epoch = {};
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
                                    const std::function<void(TranslationModel& model)>& use);

// Computes a batch of each size that these pairs can make, of 1 to `max_sentences` sentences, and
// forgets it: a GPU loads kernels by the size (06_messages/support/kernel_loading.hpp). Uses this
// rank's device.
void compute_every_size(Rank& rank, const std::vector<TokenPair>& pairs,
                        const TransformerOptions& options, int max_sentences);

}  // namespace ddp
