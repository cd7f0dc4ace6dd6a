#include "22_sharded/support/stage_models.hpp"

#include <optional>

#include "03_network/cross_entropy.hpp"
#include "03_network/models.hpp"
#include "11_data_parallel/replica.hpp"
#include "20_transformer/layers/step_memory.hpp"
#include "20_transformer/token_loss.hpp"
#include "20_transformer/words/tokenizer.hpp"
#include "22_sharded/bill.hpp"
#include "common/data/fashion_mnist.hpp"

namespace ddp {
namespace {

// The widths of the perceptron: no number of ranks divides a layer.
const std::vector<int> widths = {784, 383, 381, 379, 377, 375, 373, 371, 10};

class Perceptron final : public StageModel {
  public:
    Perceptron(Device& host, int batch, std::uint64_t seed)
        : batch_(batch), seed_(seed), random_(seed), model_(make_mlp(host, random_, widths)) {}

    Module& module() override { return *model_; }
    Blocks blocks() override { return blocks_of(*model_); }
    std::size_t activations() const override { return mlp_activations(widths, batch_); }

    void prepare(Rank& rank, Device& device, const LabelledImages& images) override {
        rank_ = &rank;
        loader_ = &make_run_scoped<Loader>(rank, device, images, fashion_mnist_normalisation,
                                           batch_, LastBatch::drop);
    }
    Variable loss(Tape& tape, TrainingState& state) override {
        current_.reset();  // its memory is for the next one: a gathering may be under way
        for (current_ = next(); !current_; current_ = next()) {
            if (has_epoch_) {
                state.epoch++;
                state.taken = 0;
            }
            loader_->start_epoch(rest_of_epoch(loader_->samples(), seed_, state.epoch, state.taken,
                                               rank_->rank(), rank_->world_size()));
            has_epoch_ = true;
        }
        return cross_entropy(model_->forward(tape.constant(current_->images)), current_->labels);
    }

  private:
    std::optional<Batch> next() { return has_epoch_ ? loader_->next() : std::nullopt; }

    const int batch_;
    const std::uint64_t seed_;
    Random random_;
    const std::unique_ptr<Sequential> model_;
    Rank* rank_ = nullptr;
    Loader* loader_ = nullptr;
    std::optional<Batch> current_;
    bool has_epoch_ = false;
};

// Letters are numbered behind the tokens that mean something.
constexpr int first_token = end_token + 1;
// All sentences are equally long, so no step has a shape that the first one has not.
constexpr int sentence_length = 8, letters = 29;

class Reversing final : public StageModel {
  public:
    Reversing(Device& host, int batch, std::uint64_t seed)
        : batch_(batch),
          seed_(seed),
          masks_(seed),
          random_(seed),
          model_(host, options(), random_, masks_) {}

    Module& module() override { return model_; }
    Blocks blocks() override { return blocks_of(model_); }
    std::size_t activations() const override {
        const StepMemory memory = predicted_memory(options(), {}, batch_, sentence_length);
        // Where backward is in a block: the gradients of a hidden layer and of its input, and of
        // some tensors of the model's width.
        const double rows = static_cast<double>(batch_) * sentence_length;
        return static_cast<std::size_t>(
            memory.kept +
            rows * (2.0 * options().feed_forward + 4.0 * options().width) * sizeof(float));
    }

    void prepare(Rank& rank, Device& device, const LabelledImages&) override {
        rank_ = &rank;
        slots_ = &make_run_scoped<TokenSlots>(rank, device,
                                              static_cast<std::size_t>(batch_) * sentence_length);
    }
    Variable loss(Tape& tape, TrainingState& state) override {
        const auto number = static_cast<std::uint64_t>(state.step);
        masks_.begin({.step = number,
                      .samples = batch_,
                      .first = rank_->rank(),
                      .stride = rank_->world_size()});
        batch_now_ = slots_->to_device(sentences(number));
        const Variable scores = model_.forward(tape, batch_now_.source, batch_now_.target_in);
        return token_loss(scores, batch_now_.target_out, 0.0, batch_ * sentence_length);
    }

  private:
    static TransformerOptions options() {
        return {.vocabulary = first_token + letters,
                .width = 128,
                .heads = 4,
                .layers = 4,
                .feed_forward = 512,
                .longest = sentence_length};
    }
    // Draws this rank's sentences of a step, and turns each round.
    TokenBatch sentences(std::uint64_t step) const {
        const auto ranks = static_cast<std::uint64_t>(rank_->world_size());
        Random random(seed_ + 1 + step * ranks + static_cast<std::uint64_t>(rank_->rank()));
        TokenBatch batch{.sentences = batch_, .length = sentence_length};
        for (int sentence = 0; sentence < batch_; sentence++) {
            std::vector<int> tokens;
            for (int i = 0; i < sentence_length; i++)
                tokens.push_back(first_token + static_cast<int>(random.below(letters)));
            batch.source.insert(batch.source.end(), tokens.begin(), tokens.end());
            batch.target_in.push_back(begin_token);
            batch.target_in.insert(batch.target_in.end(), tokens.rbegin(), tokens.rend() - 1);
            batch.target_out.insert(batch.target_out.end(), tokens.rbegin(), tokens.rend());
        }
        return batch;
    }

    const int batch_;
    const std::uint64_t seed_;
    DropoutMasks masks_;
    Random random_;
    Transformer model_;
    Rank* rank_ = nullptr;
    TokenSlots* slots_ = nullptr;
    DeviceBatch batch_now_;
};

}  // namespace

std::unique_ptr<StageModel> make_stage_model(const std::string& name, Device& host, int batch,
                                             std::uint64_t seed) {
    if (name == "transformer")
        return std::make_unique<Reversing>(host, batch, seed);
    return std::make_unique<Perceptron>(host, batch, seed);
}

}  // namespace ddp
