// The transformer, with the shapes of its tensors. S sentences of L tokens, width W, vocabulary V:
//
//     source [S, L]                            target [S, L]
//        │                                        │
//     embedding, dropout  [S L, W]             embedding, dropout  [S L, W]
//        │                                        │
//     ┌──┴─ encoder layer ──┐ x layers         ┌──┴─ decoder layer ───┐ x layers
//     │ self-attention      │                  │ self-attention,      │
//     │ feed-forward        │                  │   looking back only  │
//     └──┬──────────────────┘                  │ attention to memory ◄┼──┐
//        │                                     │ feed-forward         │  │
//        │                                     └──┬───────────────────┘  │
//     norm                                        │                      │
//        └─────────── memory [S L, W] ────────────┼──────────────────────┘
//                                              norm
//                                                 │
//                                              token scores  [S L, V]
//
// The table of the embeddings may be one parameter with three uses: source, target and, transposed,
// the scores (Press and Wolf, 2017). Its gradient is then final when backward reaches the source's
// embedding, which is the end: the largest gradient of the model is the last one to be ready.
#include "20_transformer/transformer.hpp"

#include <stdexcept>

namespace ddp {
namespace {

// Makes the tables of source, target and output: one for all three, or one for each.
std::vector<std::shared_ptr<Parameter>> make_tables(Device& device, const TransformerOptions& o) {
    const auto make = [&](const std::string& name) {
        return std::make_shared<Parameter>(name + ".weight",
                                           Tensor(device, {o.vocabulary, o.width}));
    };
    if (!o.tie_embeddings)  // three parameters, each final at its own time
        return {make("source_embedding"), make("target_embedding"), make("output")};
    const auto shared = make("embedding");
    return {shared, shared, shared};
}

}  // namespace

const TransformerOptions& checked_options(const TransformerOptions& o) {
    if (o.vocabulary < 1 || o.width < 1 || o.heads < 1 || o.layers < 1 || o.feed_forward < 1 ||
        o.longest < 1)
        throw std::invalid_argument(
            "a transformer needs a vocabulary, a width, heads, layers, a feed-forward width and a "
            "longest sentence of at least 1 each");
    return o;
}

// ---- The layers of encoder and decoder

EncoderLayer::EncoderLayer(const std::string& name, const PartMaker& make)
    : self_attn_(make.attention(name + ".self_attn")),
      feed_forward_(make.feed_forward(name)),
      residual1_(make.residual(name, 1)),
      residual2_(make.residual(name, 2)) {}

Variable EncoderLayer::forward(Variable x, const AttentionMask& mask) {
    x = residual1_.around(x, [&](Variable x) { return self_attn_.forward(x, x, mask); });
    return residual2_.around(x, [&](Variable x) { return feed_forward_.forward(x); });
}

DecoderLayer::DecoderLayer(const std::string& name, const PartMaker& make)
    : self_attn(make.attention(name + ".self_attn")),
      multihead_attn(make.attention(name + ".multihead_attn")),
      feed_forward_(make.feed_forward(name)),
      residual1_(make.residual(name, 1)),
      residual2_(make.residual(name, 2)),
      residual3_(make.residual(name, 3)) {}

Variable DecoderLayer::forward(Variable x, Variable memory, const AttentionMask& target_mask,
                               const AttentionMask& source_mask) {
    return forward(
        x, [&](Variable x) { return self_attn.forward(x, x, target_mask); },
        [&](Variable x) { return multihead_attn.forward(x, memory, source_mask); });
}

Variable DecoderLayer::forward(Variable x, const Sublayer& look_back,
                               const Sublayer& look_at_source) {
    x = residual1_.around(x, look_back);       // at the target so far
    x = residual2_.around(x, look_at_source);  // at the memory
    return residual3_.around(x, [&](Variable x) { return feed_forward_.forward(x); });
}

// ---- The model

Transformer::Transformer(Device& device, const TransformerOptions& o, Random& random,
                         const DropoutMasks& masks)
    : TranslationModel("transformer"),
      options_(checked_options(o)),
      tables_(make_tables(device, o)),
      layers_(name()),
      // In the order of forward, which is the order of the parameters.
      source_embedding_(layers_.add<Embedding>("source_embedding", tables_[0],
                                               sinusoidal_positions(device, o.longest, o.width))),
      source_dropout_(layers_.add<Dropout>("source_dropout", o.dropout, masks)),
      encoder_(make_stack<EncoderLayer>("encoder", o.layers,
                                        {layers_, device, options_, random, masks})),
      encoder_norm_(layers_.add<LayerNorm>("encoder.norm", device, o.width)),
      target_embedding_(
          layers_.add<Embedding>("target_embedding", tables_[1], source_embedding_.positions())),
      target_dropout_(layers_.add<Dropout>("target_dropout", o.dropout, masks)),
      decoder_(make_stack<DecoderLayer>("decoder", o.layers,
                                        {layers_, device, options_, random, masks})),
      decoder_norm_(layers_.add<LayerNorm>("decoder.norm", device, o.width)),
      output_(layers_.add<TokenScores>("output", tables_[2])) {
    draw_matrices(parameters(), random);
}

Variable Transformer::forward(Tape& tape, const Tokens& source, const Tokens& target) {
    if (source.shape().size() != 2 || source.shape() != target.shape())
        throw std::invalid_argument("the transformer takes two tensors [sentences, length], not " +
                                    to_string(source.shape()) + " and " +
                                    to_string(target.shape()));
    const AttentionMask source_mask{lengths_without_padding(source)};  // for both stacks
    return decode(target, encode(tape, source, source_mask), source_mask);
}

// In both halves, end_of(x, part) is x, if nobody observes the parts.
Variable Transformer::encode(Tape& tape, const Tokens& source, const AttentionMask& mask) {
    Variable x = end_of(source_dropout_.forward(source_embedding_.forward(tape, source)), "source");
    for (std::size_t i = 0; i < encoder_.size(); i++)
        x = end_of(encoder_[i].forward(x, mask), "encoder layer " + std::to_string(i));
    return end_of(encoder_norm_.forward(x), "encoder norm");
}

Variable Transformer::decode(const Tokens& target, Variable memory,
                             const AttentionMask& source_mask) {
    const AttentionMask target_mask{lengths_without_padding(target), true};
    Variable x = target_embedding_.forward(*memory.tape, target);
    x = end_of(target_dropout_.forward(x), "target");
    for (std::size_t i = 0; i < decoder_.size(); i++)
        x = end_of(decoder_[i].forward(x, memory, target_mask, source_mask),
                   "decoder layer " + std::to_string(i));
    x = end_of(decoder_norm_.forward(x), "decoder norm");
    return end_of(output_.forward(x), "scores");
}

// Tells the observer, if there is one, where a part ends.
Variable Transformer::end_of(Variable x, const std::string& part) const {
    return end_of_part_ ? end_of_part_(x, part) : x;
}

void Transformer::set_training(bool is_training) {
    Module::set_training(is_training);
    layers_.set_training(is_training);
}

}  // namespace ddp
