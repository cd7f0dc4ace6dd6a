#pragma once
// A small language model in parts: a stage of its blocks, and of each matrix this rank's part.
//
//     tokens ─▶ embedding ─▶ block 0 ─▶ block 1 ─│─▶ block 2 ─▶ block 3 ─▶ norm ─▶ scores ─▶ loss
//               first stage                      │                    last stage
//
//     block      x + attention(norm x)          each part has some of the heads
//                x + feed-forward(norm x)       each part has some of the hidden columns
//
// A norm is small and needs all of x: every part has it whole, computes the same, and gets the same
// gradient.
#include <optional>

#include "20_transformer/attention.hpp"
#include "20_transformer/layers/layer_norm.hpp"
#include "24_mesh/layers/parallel_linear.hpp"
#include "24_mesh/layers/vocabulary.hpp"

namespace ddp {

struct LanguageModelOptions {
    int vocabulary = 64, width = 32, heads = 8, blocks = 4, feed_forward = 128;
    int length = 16;  // tokens of a sentence

    bool operator==(const LanguageModelOptions&) const = default;
};

class ParallelBlock {
  public:
    ParallelBlock(TensorParallel& parallel, const std::string& name, Device& device,
                  const LanguageModelOptions& options, Random& random);

    // Computes [tokens, width] -> the same shape.
    Variable forward(Variable x, const AttentionMask& mask);
    void append_to(Parameters& parameters) const;

  private:
    Variable attention(Variable x, const AttentionMask& mask);
    Variable feed_forward(Variable x);

    TensorParallel& parallel_;
    const std::string name_;
    const int heads_;  // of a part
    std::unique_ptr<LayerNorm> norm1_, norm2_;
    ColumnParallelLinear query_, key_, value_, up_;
    RowParallelLinear out_, down_;
};

class ParallelModel : public Module {
  public:
    // Makes stage `stage` of `stages`, with the same first values in every mesh. `parallel` must
    // outlive the model. Throws std::invalid_argument if the sizes cannot be divided.
    ParallelModel(TensorParallel& parallel, Device& device, const LanguageModelOptions& options,
                  int stage, int stages, std::uint64_t seed);

    // Runs this stage: `input` is [tokens, width], or nothing on the first stage, which reads
    // `tokens` [sentences, length]. Returns the same shape, or on the last stage the mean loss for
    // `target` [sentences * length], one element.
    Variable forward(Tape& tape, std::optional<Variable> input, const Tokens& tokens,
                     const Labels& target);
    Parameters parameters() const override;

  private:
    Variable embed(Tape& tape, const Tokens& tokens);

    TensorParallel& parallel_;
    const LanguageModelOptions options_;
    std::unique_ptr<VocabularyParallelEmbedding> embedding_;  // on the first stage
    std::vector<std::unique_ptr<ParallelBlock>> blocks_;
    std::unique_ptr<LayerNorm> norm_;               // on the last stage
    std::unique_ptr<ColumnParallelLinear> scores_;  // on the last stage
};

}  // namespace ddp
