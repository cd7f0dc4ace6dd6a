#pragma once
// A transformer without an encoder, as in GPT (Radford et al., 2018): a language model, whose text
// is the source with its translation after it.
#include <memory>

#include "20_transformer/transformer.hpp"

namespace ddp {

class DecoderOnlyTransformer : public TranslationModel {
  public:
    // Makes a stack of 2 * options.layers layers, as many as both stacks of a Transformer have.
    // `masks` and errors are as in Transformer.
    DecoderOnlyTransformer(Device& device, const TransformerOptions& options, Random& random,
                           const DropoutMasks& masks);

    // Reads `text`, a batch's target_in as `joined` has made it; the source is in it. Throws
    // std::invalid_argument unless it is [sentences, length].
    Variable forward(Tape& tape, const Tokens& source, const Tokens& text) override;

    // Computes the whole text again for each new token: no keys and values are kept.
    NextScores begin_decoding(const Tokens& sources) override;

    Parameters parameters() const override { return layers_.parameters(); }
    void set_training(bool is_training) override;
    const TransformerOptions& options() const override { return options_; }

  private:
    const TransformerOptions options_;
    const std::shared_ptr<Parameter> table_;
    Sequential layers_;
    Embedding& embedding_;
    Dropout& dropout_;
    std::vector<EncoderLayer> stack_;
    LayerNorm& norm_;
    TokenScores& output_;
};

// Makes the model that options.decoder_only asks for.
std::unique_ptr<TranslationModel> make_translation_model(Device& device,
                                                         const TransformerOptions& options,
                                                         Random& random, const DropoutMasks& masks);
// Returns the batch as that model reads it.
TokenBatch batch_for(const TranslationModel& model, const TokenBatch& batch);

}  // namespace ddp
