// One step of decoding, for each decoder layer:
//
//     kept keys           from_row      new keys
//     row 0  a0 a1 a2     row 0 <- 1    row 0  b0 b1 b2 | key of its last token
//     row 1  b0 b1 b2     row 1 <- 0    row 1  a0 a1 a2 | key of its last token
//                         row 2 <- 1    row 2  b0 b1 b2 | key of its last token
//
// and the same with values. Then the last tokens, and only they, go through the layer.
#include "20_transformer/layers/decoding.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <stdexcept>

#include "20_transformer/decoder_only.hpp"
#include "20_transformer/words/tokenizer.hpp"
#include "common/gpu/gpu.hpp"
#include "common/gpu/rows.hpp"

namespace ddp {
namespace {

// Copies `kept` numbers of row from_row[r] of `from`, and behind them `fresh` numbers of row r of
// `latest`, to row r of `to`.
__global__ void gather_and_append(int rows, int kept, int fresh, const int* from_row,
                                  const float* from, const float* latest, float* to) {
    const std::size_t all = static_cast<std::size_t>(kept) + fresh;
    for (std::size_t row : row_range(rows)) {
        const float* old = from + static_cast<std::size_t>(from_row[row]) * kept;
        for (std::size_t i : column_range(kept))
            to[row * all + i] = old[i];
        for (std::size_t i : column_range(fresh))
            to[row * all + kept + i] = latest[row * fresh + i];
    }
}

// Returns the rows of `from` [any, tokens, width], picked by from_row; `latest` [rows, width] is
// appended to each, if it is there.
Tensor gathered(const Tensor& from, int tokens, int width, const Labels& from_row,
                const Tensor& latest = {}) {
    const int rows = from_row.dim(0), more = latest.is_empty() ? 0 : 1;
    const Tensor to(from.device(), {rows * (tokens + more), width});
    launch(from.device().stream(), rows_for(rows, width), gather_and_append, rows, tokens * width,
           more * width, from_row.data(), from.data(), latest.data(), to.data());
    return to;
}

void require_rows(const std::vector<int>& last, const std::vector<int>& from_row, int rows) {
    if (last.size() != from_row.size() || last.empty())
        throw std::invalid_argument(
            "decoding needs a last token and an old row for each new row, not " +
            std::to_string(last.size()) + " and " + std::to_string(from_row.size()));
    for (const int row : from_row)
        if (row < 0 || row >= rows)
            throw std::out_of_range("decoding has no row " + std::to_string(row) +
                                    " to go on with, only " + std::to_string(rows));
}

}  // namespace

Decoding::Decoding(Transformer& model, const Tokens& sources)
    : model_(model), device_(sources.device()), source_length_(sources.dim(1)) {
    if (model.is_training())
        throw std::logic_error(
            "a model in training drops numbers at random: call set_training(false) before "
            "decoding");
    const AttentionMask mask{lengths_without_padding(sources)};
    row_lengths_ = mask.key_lengths;
    for (int sentence = 0; sentence < sources.dim(0); sentence++)
        sentence_of_row_.push_back(sentence);
    // The source's keys and values, for every layer.
    Tape tape(device_);
    const Variable memory = model.encode(tape, sources, mask);
    for (DecoderLayer& layer : model.decoder_) {
        Kept kept;
        kept.source_keys = layer.multihead_attn.key.forward(memory).value();
        kept.source_values = layer.multihead_attn.value.forward(memory).value();
        // Nothing of the target yet.
        kept.keys = kept.values = Tensor(device_, {0, model.options().width});
        layers_.push_back(kept);
    }
}

// Picks the sentences of the new rows. As long as every row stays with its sentence, the source's
// keys and values need not be copied.
void Decoding::pick_sentences(const std::vector<int>& from_row, const Labels& picked) {
    std::vector<int> sentences;
    for (const int row : from_row)
        sentences.push_back(sentence_of_row_[row]);
    if (sentences == sentence_of_row_)
        return;
    const int width = model_.options().width;
    for (Kept& kept : layers_) {
        kept.source_keys = gathered(kept.source_keys, source_length_, width, picked);
        kept.source_values = gathered(kept.source_values, source_length_, width, picked);
    }
    const std::vector<int> lengths = row_lengths_.to_host();
    std::vector<int> picked_lengths;
    for (const int row : from_row)
        picked_lengths.push_back(lengths[row]);
    row_lengths_ = Labels(device_, {picked.dim(0)}, picked_lengths);
    sentence_of_row_ = std::move(sentences);
}

Tensor Decoding::next(const std::vector<int>& last, const std::vector<int>& from_row) {
    require_rows(last, from_row, rows());
    const int rows = static_cast<int>(last.size()), width = model_.options().width;
    const Labels picked(device_, {rows}, from_row);
    pick_sentences(from_row, picked);
    // Every key of the target is seen: none is padding, and none is later than the last token.
    const AttentionMask all_seen{
        Labels(device_, {rows}, std::vector<int>(last.size(), length_ + 1))};
    const AttentionMask source_mask{row_lengths_};

    Tape tape(device_);
    Variable x = model_.target_embedding_.forward(tape, Tokens(device_, {rows, 1}, last), length_);
    for (std::size_t i = 0; i < layers_.size(); i++) {
        DecoderLayer& layer = model_.decoder_[i];
        Kept& kept = layers_[i];
        x = layer.forward(
            x,
            [&](Variable x) {
                kept.keys = gathered(kept.keys, length_, width, picked,
                                     layer.self_attn.key.forward(x).value());
                kept.values = gathered(kept.values, length_, width, picked,
                                       layer.self_attn.value.forward(x).value());
                return layer.self_attn.forward(x, tape.constant(kept.keys),
                                               tape.constant(kept.values), all_seen);
            },
            [&](Variable x) {
                return layer.multihead_attn.forward(x, tape.constant(kept.source_keys),
                                                    tape.constant(kept.source_values), source_mask);
            });
    }
    length_++;
    return model_.output_.forward(model_.decoder_norm_.forward(x)).value();
}

NextScores Transformer::begin_decoding(const Tokens& sources) {
    return [decoding = std::make_shared<Decoding>(*this, sources)](const auto& last,
                                                                   const auto& from_row) {
        return decoding->next(last, from_row).to_host();
    };
}

NextScores DecoderOnlyTransformer::begin_decoding(const Tokens& sources) {
    if (is_training())
        throw std::logic_error("call set_training(false) before decoding");
    const auto length = static_cast<std::size_t>(sources.dim(1));
    const std::vector<int> tokens = sources.to_host();
    // The text of each row so far: its source, without the padding.
    std::vector<std::vector<int>> texts;
    for (auto from = tokens.begin(); from != tokens.end(); from += length)
        texts.emplace_back(from, std::find(from, from + length, pad_token));

    // Decodes one token more of each row.
    return [this, &device = sources.device(), texts](const std::vector<int>& last,
                                                     const std::vector<int>& from_row) mutable {
        // A row may go on with another row's text, as a beam does.
        std::vector<std::vector<int>> grown;
        for (std::size_t row = 0; row < last.size(); row++) {
            grown.push_back(texts.at(static_cast<std::size_t>(from_row.at(row))));
            grown.back().push_back(last[row]);
        }
        texts = std::move(grown);
        // All of it is computed again: this model keeps no keys and values.
        const Tokens rows = padded(device, texts);
        Tape tape(device, Recording::off);
        const Tensor all = forward(tape, {}, rows).value();
        // Take only the scores after the last token of each row.
        std::vector<float> scores;
        for (std::size_t row = 0; row < texts.size(); row++) {
            const std::size_t place = row * rows.dim(1) + texts[row].size() - 1;
            std::ranges::copy(all.view(place * all.dim(1), {all.dim(1)}).to_host(),
                              std::back_inserter(scores));
        }
        return scores;
    };
}

}  // namespace ddp
