// One step on every rank, of `accumulate` global batches:
//
//     share         this rank's sentences of the global batch, padded to their own longest
//     forward       the transformer's scores, through DDP; dropout's masks depend on the sentence
//     loss          the sum over this rank's tokens, divided by (tokens of all ranks) / (ranks)
//     backward      the gradients of the last share are averaged bucket by bucket
//     wait          for the copy of the last checkpoint, before anything changes
//     clip          the averaged gradients: the same on all ranks, so none needs to ask
//     Adam          with the learning rate of this step
//     count         report the loss; save a checkpoint where one is due
//
// What the loss of a step is divided by needs the tokens of all ranks. Nobody has to be asked:
// every rank knows the whole plan of the epoch.
#include "20_transformer/translation_training.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <utility>

#include "03_network/layers/fused_optimizers.hpp"
#include "10_nodes/make_communicator.hpp"
#include "15_overlap/compression.hpp"
#include "16_recipe/clip_gradients.hpp"
#include "19_checkpoint_failover/state/resume.hpp"
#include "20_transformer/decoder_only.hpp"
#include "20_transformer/token_loss.hpp"
#include "common/report/bench.hpp"
#include "common/report/options.hpp"

namespace ddp {
namespace {

constexpr std::size_t small_buckets = 256 << 10;  // so that a small model has several

// ---- One rank's training

class TranslationTraining {
  public:
    TranslationTraining(Rank& rank, const TranslationData& data, const TranslationPlan& plan,
                        const TranslationHooks& hooks)
        : rank_(rank),
          data_(data),
          plan_(plan),
          hooks_(hooks),
          device_(make_run_scoped<Device>(rank, rank_memory(rank))),
          slots_(make_run_scoped<TokenSlots>(rank, device_, max_places(rank, data, plan))),
          masks_(plan.seed),
          model_(make_model()),
          communicator_(make_communicator(plan.communicator, rank, arena_bytes())),
          ddp_(*communicator_, device_, *model_, {.bucket_cap_bytes = small_buckets}),
          optimizer_(model_->parameters(), plan.learning_rate),
          tape_(device_),
          run_(*communicator_, device_, *model_, optimizer_, plan.checkpoints,
               configuration_of(plan, data)) {
        if (plan.compresses)
            ddp_.set_bucket_hook(
                compressed_average<__nv_bfloat16>(*communicator_, ddp_.gradients()));
        run_.set_hooks({.before_save =
                            [this](TrainingState& state) {
                                state.configuration[tokenizer_entry] = data_.tokenizer->to_json();
                                state.buckets = ddp_.state();
                            },
                        .after_resume =
                            [this](const TrainingState& state) {
                                require_same_tokenizer(state.configuration, data_);
                                ddp_.set_state(state.buckets);
                            }});
        const int batches = static_cast<int>(data.train.size()) / plan.batch;
        steps_ = plan.epochs * ((batches + plan.accumulate - 1) / plan.accumulate);
    }

    // Trains to the end of the plan, and compares the replicas.
    TranslationResult run() {
        run_.resume();
        reported_step_ = state_.step;
        if (hooks_.on_start)
            hooks_.on_start(state_.step);
        if (loads_kernels())
            rehearse();
        for (; state_.epoch <= plan_.epochs; state_.epoch++, state_.taken = 0)
            epoch();
        run_.finish();
        require_equal_replicas(rank_, model_->parameters());
        result_.steps = state_.step;
        result_.hash = text_of_hash(hash_of(model_->parameters()));
        return result_;
    }

    TranslationModel& model() { return *model_; }

  private:
    std::unique_ptr<TranslationModel> make_model() {
        TransformerOptions options = plan_.model;
        options.vocabulary = data_.tokenizer->size();
        Random random(plan_.seed);
        return make_translation_model(device_, options, random, masks_);
    }

    std::size_t arena_bytes() const {
        return ddp_arena_bytes(*model_) + resume_arena_bytes() +
               (plan_.compresses ? compressed_arena_bytes(*model_) : 0);
    }

    // Computes a share of each size that will come, and forgets its gradients: a GPU loads kernels
    // by the size (06_messages/support/kernel_loading.hpp), and each batch has a length of its own.
    void rehearse() {
        const auto quiet = ddp_.no_sync();
        std::set<std::pair<int, int>> sizes;  // sentences, length
        for (int epoch = state_.epoch; epoch <= plan_.epochs; epoch++) {
            const BatchPlan batches(data_.train, plan_.batch, plan_.seed, epoch);
            for (int i = 0; i < batches.batches(); i++)
                if (const auto share = batches.batch(i, rank_.rank(), rank_.world_size());
                    sizes.emplace(share.sentences, share.length).second)
                    learn(share, 1);
        }
        optimizer_.zero_gradients();
        losses_.clear();
        device_.stream().synchronize();
    }

    // ---- An epoch

    // Trains for the rest of the current epoch, then validates.
    void epoch() {
        const BatchPlan batches(data_.train, plan_.batch, plan_.seed, state_.epoch);
        model_->set_training(true);
        rank_.barrier();  // no kernel may wait for a rank that still allocates device memory
        clock_ = Stopwatch();
        for (int next = first_batch(batches); next < batches.batches(); next += plan_.accumulate) {
            rank_.check();  // has another rank failed? Then its cause is thrown here
            step(batches, next, std::min(next + plan_.accumulate, batches.batches()));
        }
        report();
        model_->set_training(false);
        result_.validation_loss = validation_loss();
        if (hooks_.on_epoch)
            hooks_.on_epoch(state_.epoch, state_.step, result_.validation_loss, *model_);
    }

    // Returns the first global batch of the epoch that is not learned from yet.
    int first_batch(const BatchPlan& batches) const {
        std::int64_t before = 0;
        int batch = 0;
        while (batch < batches.batches() && before < state_.taken)
            before += batches.sentences_in(batch++);
        return batch;
    }

    // Learns from the global batches `first` to `end - 1`, in one step of the optimizer.
    void step(const BatchPlan& batches, int first, int end) {
        const int ranks = rank_.world_size();
        std::vector<TokenBatch> shares;
        int all_tokens = 0, own_tokens = 0;
        for (int i = first; i < end; i++) {
            shares.push_back(batches.batch(i, rank_.rank(), ranks));
            all_tokens += shares.back().all_target_tokens;
            own_tokens += shares.back().target_tokens;
        }
        // With these, DDP's mean over the ranks is the mean over all tokens (see Divisor).
        const double divisor = plan_.divisor == Divisor::all_tokens
                                   ? static_cast<double>(all_tokens) / ranks
                                   : own_tokens;
        for (int i = first; i < end; i++) {
            std::optional<DistributedDataParallel::NoSync> quiet;
            if (i + 1 < end)
                quiet.emplace(ddp_);  // gradients add up here, and the last share sends the sum
            learn(shares[static_cast<std::size_t>(i - first)], divisor);
            state_.taken += batches.sentences_in(i);
            state_.samples += batches.sentences_in(i);
        }
        run_.wait_for_copy();  // the optimizer is the first to change anything
        clip_grad_norm(model_->parameters(), plan_.clip);
        optimizer_.set_learning_rate(
            learning_rate_at(++state_.step, plan_.learning_rate, plan_.warm_up));
        optimizer_.step();
        optimizer_.zero_gradients();
        tokens_ += all_tokens;
        if (state_.step % plan_.report_every == 0)
            report();
        run_.save_if_due();
    }

    // Forward and backward of one share.
    void learn(const TokenBatch& share, double divisor) {
        // A sentence's mask depends on its place in the run, not on the rank that has it.
        masks_.begin({.step = static_cast<std::uint64_t>(state_.samples),
                      .samples = share.sentences,
                      .first = rank_.rank(),
                      .stride = rank_.world_size()});
        const DeviceBatch tokens = slots_.to_device(batch_for(*model_, share));
        const Variable scores =
            ddp_.forward([&] { return model_->forward(tape_, tokens.source, tokens.target_in); });
        const Variable loss = token_loss(scores, tokens.target_out, plan_.smoothing, divisor);
        ddp_.backward(loss);
        losses_.push_back(loss.value());
        tape_.clear();
    }

    // Returns the loss for a token of the validation split, whose sentences are dealt to all ranks.
    // (If rank 0 did it alone, the others would wait for it.)
    double validation_loss() {
        struct Sum {
            double loss = 0;
            std::int64_t tokens = 0;
        } mine, all;
        const BatchPlan batches(data_.valid, plan_.batch, 0, 0);
        for (int i = 0; i < batches.batches(); i++) {
            rank_.check();
            const TokenBatch share = batches.batch(i, rank_.rank(), rank_.world_size());
            const DeviceBatch tokens = slots_.to_device(batch_for(*model_, share));
            const Variable scores = model_->forward(tape_, tokens.source, tokens.target_in);
            mine.loss += token_loss(scores, tokens.target_out, 0.0, 1.0).value().to_host()[0];
            mine.tokens += share.target_tokens;
            tape_.clear();
        }
        // Sums of sums and of counts: the ranks have other numbers of tokens.
        for (const Sum& each : rank_.all_gather(mine)) {
            all.loss += each.loss;
            all.tokens += each.tokens;
        }
        return all.loss / static_cast<double>(all.tokens);
    }

    // Reports the steps since the last report: the loss of all ranks, not of one.
    void report() {
        if (losses_.empty())
            return;
        double mine = 0;
        for (const Tensor& loss : losses_)
            mine += loss.to_host()[0];  // waits for the device
        const int steps = state_.step - reported_step_;
        const double loss = rank_.mean_over_ranks(mine) / steps;
        if (!std::isfinite(loss))
            throw std::runtime_error("the loss is no longer a number between the steps " +
                                     std::to_string(reported_step_ + 1) + " and " +
                                     std::to_string(state_.step) +
                                     ": the steps are too long; try a smaller --learning-rate");
        const double seconds = clock_.seconds();
        clock_ = Stopwatch();
        result_.seconds += seconds;
        result_.tokens += tokens_;
        result_.loss = loss;
        if (hooks_.on_step)
            hooks_.on_step({state_.step, steps_, state_.epoch, result_.tokens, loss,
                            optimizer_.learning_rate(), static_cast<double>(tokens_) / seconds});
        losses_.clear();
        tokens_ = 0;
        reported_step_ = state_.step;
    }

    Rank& rank_;
    const TranslationData& data_;
    const TranslationPlan& plan_;
    const TranslationHooks& hooks_;
    Device& device_;
    TokenSlots& slots_;
    DropoutMasks masks_;
    const std::unique_ptr<TranslationModel> model_;
    const std::unique_ptr<Communicator> communicator_;
    DistributedDataParallel ddp_;
    FusedAdam optimizer_;
    Tape tape_;
    CheckpointedRun run_;  // its end comes before the communicator's
    TrainingState& state_ = run_.state();
    TranslationResult result_;
    int steps_ = 0;  // of the whole plan
    // Since the last report:
    std::vector<Tensor> losses_;
    std::int64_t tokens_ = 0;
    int reported_step_ = 0;
    Stopwatch clock_;
};

}  // namespace

// ---- What the chapter's program calls

double learning_rate_at(int step, double peak, int warm_up) {
    if (step < warm_up)
        return peak * step / warm_up;
    return peak * std::sqrt(static_cast<double>(warm_up) / step);
}

TranslationResult train_translation(Rank& rank, const TranslationData& data,
                                    const TranslationPlan& plan, const TranslationHooks& hooks,
                                    const std::function<void(TranslationModel& model)>& use) {
    rank.select_device();
    if (plan.batch < rank.world_size())
        throw OptionError("--batch " + std::to_string(plan.batch) + " gives some of " +
                          std::to_string(rank.world_size()) +
                          " ranks no sentence: take a larger batch or fewer ranks.");
    TranslationTraining training(rank, data, plan, hooks);
    const TranslationResult result = training.run();
    training.model().set_training(false);
    if (use)
        use(training.model());
    return result;
}

void compute_every_size(Rank& rank, const std::vector<TokenPair>& pairs,
                        const TransformerOptions& options, int max_sentences) {
    rank.select_device();
    auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
    DropoutMasks masks(1);
    Random weights(1);
    Transformer model(device, options, weights, masks);
    Tape tape(device);
    std::set<std::pair<int, int>> sizes;  // sentences, length
    for (const TokenPair& pair : pairs)
        for (int sentences = 1; sentences <= max_sentences; sentences++) {
            const std::vector<TokenPair> copies(static_cast<std::size_t>(sentences), pair);
            const TokenBatch batch = BatchPlan(copies, sentences, 0, 0).batch(0, 0, 1);
            if (!sizes.emplace(sentences, batch.length).second)
                continue;
            masks.begin({.step = 0, .samples = sentences, .first = 0, .stride = 1});
            const DeviceBatch tokens = to_device(device, batch);
            const Variable scores = model.forward(tape, tokens.source, tokens.target_in);
            tape.backward(token_loss(scores, tokens.target_out, 0.0, 1.0));
            tape.clear();
        }
    device.stream().synchronize();
}

}  // namespace ddp
