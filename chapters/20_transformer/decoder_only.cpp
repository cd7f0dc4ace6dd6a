// A language model that translates. S texts of L tokens, width W, vocabulary V; end_token and
// begin_token stand between the source and its translation:
//
//     tokens in   s1 s2 s3 end begin t1  t2         each sees itself and all before it
//     wanted      .  .  .  .   t1    t2  end        . is pad_token: no loss, no gradient
//
//     text [S, L] -> embedding, dropout [S L, W] -> 2 x layers: self-attention that looks back,
//     feed-forward -> norm -> token scores [S L, V]
//
// Embedding and scores share one table, unless they are untied: one parameter with two uses, whose
// gradient is final only where backward ends.
#include "20_transformer/decoder_only.hpp"

#include <stdexcept>

namespace ddp {
namespace {

std::shared_ptr<Parameter> make_table(const std::string& name, Device& device,
                                      const TransformerOptions& o) {
    return std::make_shared<Parameter>(name + ".weight", Tensor(device, {o.vocabulary, o.width}));
}

}  // namespace

DecoderOnlyTransformer::DecoderOnlyTransformer(Device& device, const TransformerOptions& o,
                                               Random& random, const DropoutMasks& masks)
    : TranslationModel("decoder_only"),
      options_(checked_options(o)),
      table_(make_table("embedding", device, o)),
      layers_(name()),
      embedding_(layers_.add<Embedding>("embedding", table_,
                                        sinusoidal_positions(device, 2 * o.longest, o.width))),
      dropout_(layers_.add<Dropout>("dropout", o.dropout, masks)),
      stack_(make_stack<EncoderLayer>("decoder", 2 * o.layers,
                                      {layers_, device, options_, random, masks})),
      norm_(layers_.add<LayerNorm>("decoder.norm", device, o.width)),
      // Tied, the scores use the same parameter again.
      output_(layers_.add<TokenScores>(
          "output", o.tie_embeddings ? table_ : make_table("output", device, o))) {
    draw_matrices(parameters(), random);
}

Variable DecoderOnlyTransformer::forward(Tape& tape, const Tokens& /*source*/, const Tokens& text) {
    if (text.shape().size() != 2)
        throw std::invalid_argument("a language model takes a tensor [sentences, length], not " +
                                    to_string(text.shape()));
    // The mask alone makes a decoder of the encoder's layers.
    const AttentionMask looking_back{lengths_without_padding(text), true};
    Variable x = dropout_.forward(embedding_.forward(tape, text));
    for (EncoderLayer& layer : stack_)
        x = layer.forward(x, looking_back);
    return output_.forward(norm_.forward(x));
}

void DecoderOnlyTransformer::set_training(bool is_training) {
    Module::set_training(is_training);
    layers_.set_training(is_training);
}

}  // namespace ddp
