#pragma once
// A transformer that translates (Vaswani et al., 2017; torch.nn.Transformer, whose names the
// parameters have where it has like ones).
//
//     DropoutMasks masks(seed);
//     Transformer model(device, {.vocabulary = tokenizer.size()}, random, masks);
//     const Variable logits = model.forward(tape, source, target_in);
//     const Variable loss = token_loss(logits, target_out, 0.1, divisor);
//
// How to translate with it is in layers/decoding.hpp.
#include <vector>

#include "20_transformer/layers/embedding.hpp"
#include "20_transformer/layers/model_parts.hpp"
#include "20_transformer/layers/part_times.hpp"
#include "20_transformer/layers/translation_model.hpp"

namespace ddp {

struct TransformerOptions {
    int vocabulary = 0;
    int width = 128;  // numbers of a token
    int heads = 4;
    int layers = 2;  // of the encoder, and as many of the decoder
    int feed_forward = 512;
    int longest = 256;  // tokens of a sentence
    double dropout = 0.1;
    bool norm_first = true;
    bool tie_embeddings = true;  // one table for source, target and output
    bool decoder_only = false;   // no encoder: decoder_only.hpp
};

// Returns the options. Throws std::invalid_argument for sizes that make no model.
const TransformerOptions& checked_options(const TransformerOptions& options);

// One layer of the encoder: every token of the source looks at all of them.
class EncoderLayer {
  public:
    EncoderLayer(const std::string& name, const PartMaker& make);
    Variable forward(Variable x, const AttentionMask& mask);

  private:
    MultiHeadAttention self_attn_;
    FeedForward feed_forward_;
    Residual residual1_, residual2_;
};

// One layer of the decoder: every token of the target looks back, and then at the source.
class DecoderLayer {
  public:
    DecoderLayer(const std::string& name, const PartMaker& make);
    Variable forward(Variable x, Variable memory, const AttentionMask& target_mask,
                     const AttentionMask& source_mask);
    // Does the same where both attentions are the caller's.
    Variable forward(Variable x, const Sublayer& look_back, const Sublayer& look_at_source);

    MultiHeadAttention self_attn, multihead_attn;

  private:
    FeedForward feed_forward_;
    Residual residual1_, residual2_, residual3_;
};

class Transformer : public TranslationModel {
  public:
    // Draws the first values of all matrices from +-sqrt(6 / (rows + columns)) (Glorot and Bengio,
    // 2010), as the tutorials of PyTorch do. `masks` must outlive the model; before each forward in
    // training, masks.begin is told the batch's sentences. Throws std::invalid_argument for
    // sizes that make no model.
    Transformer(Device& device, const TransformerOptions& options, Random& random,
                const DropoutMasks& masks);

    // Computes the scores of every token to come next [sentences * length, vocabulary], from the
    // tokens of the sources and of the targets, which begin with begin_token. Both are [sentences,
    // length]. Throws std::invalid_argument if they are not.
    Variable forward(Tape& tape, const Tokens& source, const Tokens& target) override;

    // Compute the two halves of forward: source and target may have lengths of their own, and the
    // mask is the source's. encode returns [sentences * length, width], decode the scores.
    Variable encode(Tape& tape, const Tokens& source, const AttentionMask& mask);
    Variable decode(const Tokens& target, Variable memory, const AttentionMask& source_mask);

    // Makes a Decoding, which keeps what it has computed.
    NextScores begin_decoding(const Tokens& sources) override;

    // Calls `end` after each part of every forward from now on. An empty function ends that.
    void observe(EndOfPart end) { end_of_part_ = std::move(end); }

    Parameters parameters() const override { return layers_.parameters(); }
    void set_training(bool is_training) override;

    const TransformerOptions& options() const override { return options_; }

  private:
    friend class Decoding;

    Variable end_of(Variable x, const std::string& part) const;

    const TransformerOptions options_;
    const std::vector<std::shared_ptr<Parameter>> tables_;  // source, target, output
    Sequential layers_;  // owns the layers; a transformer is not a row, so it runs none of them
    Embedding& source_embedding_;
    Dropout& source_dropout_;
    std::vector<EncoderLayer> encoder_;
    LayerNorm& encoder_norm_;
    Embedding& target_embedding_;
    Dropout& target_dropout_;
    std::vector<DecoderLayer> decoder_;
    LayerNorm& decoder_norm_;
    TokenScores& output_;
    EndOfPart end_of_part_;
};

}  // namespace ddp
