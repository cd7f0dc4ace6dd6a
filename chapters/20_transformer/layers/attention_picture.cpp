#include "20_transformer/layers/attention_picture.hpp"

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "20_transformer/decoder_only.hpp"
#include "20_transformer/translate.hpp"
#include "20_transformer/translation_training.hpp"
#include "20_transformer/words/utf8.hpp"
#include "common/report/csv.hpp"

namespace ddp {
namespace {

// Returns what each token spells. A token may be one byte of a letter, which is no text alone.
std::vector<std::string> spellings(const Tokenizer& tokenizer, const std::vector<int>& tokens) {
    std::vector<std::string> texts;
    for (const int token : tokens) {
        const std::string text = tokenizer.decode({token});
        texts.push_back(is_utf8(text) ? text : "·");
    }
    texts.push_back("(end)");
    return texts;
}

// Returns the values of the last node on the tape that has this label.
const Tensor& value_on(const Tape& tape, const std::string& label) {
    for (auto node = tape.nodes().rbegin(); node != tape.nodes().rend(); ++node)
        if (node->operation == label)
            return node->value;
    throw std::logic_error("nothing on the tape is called " + label);
}

// Writes how much each token of the translation takes of each token of the sentence.
void write_attention_of(CsvWriter& writer, TranslationModel& model, const Tokenizer& tokenizer,
                        const std::string& sentence) {
    const std::vector<int> tokens = tokenizer.encode(sentence);
    const std::vector<TokenPair> pairs{{tokens, translate(model, {tokens}).front()}};
    // A forward of the whole pair leaves the weights on the tape.
    const TokenBatch batch = BatchPlan(pairs, 1, 0, 0).batch(0, 0, 1);
    Device& device = model.parameters().front()->value.device();
    Tape tape(device);
    const DeviceBatch on_device = to_device(device, batch_for(model, batch));
    model.forward(tape, on_device.source, on_device.target_in);
    // A model that is only a decoder has the source's tokens in front of the target's.
    const auto& [layers, attention, is_behind] =
        model.options().decoder_only ? std::tuple(2 * model.options().layers, ".self_attn", true)
                                     : std::tuple(model.options().layers, ".multihead_attn", false);
    const Tensor last =  // [1, heads, queries, keys]
        value_on(tape, "decoder.layers." + std::to_string(layers - 1) + attention + ".weights");
    const std::vector<float> weights = last.to_host();
    const auto heads = static_cast<std::size_t>(last.dim(1)),
               queries = static_cast<std::size_t>(last.dim(2)),
               keys = static_cast<std::size_t>(last.dim(3));
    const std::vector<std::string> source = spellings(tokenizer, pairs[0].source),
                                   target = spellings(tokenizer, pairs[0].target);
    const std::size_t first = is_behind ? source.size() : 0;
    for (std::size_t query = 0; query < target.size(); query++)
        for (std::size_t key = 0; key < source.size(); key++) {
            double mean = 0;
            for (std::size_t head = 0; head < heads; head++)
                mean += weights[(head * queries + first + query) * keys + key] /
                        static_cast<double>(heads);
            writer.row({sentence, target[query], source[key], query, key, mean});
        }
}

}  // namespace

void write_attention(const std::filesystem::path& csv, TranslationModel& model,
                     const Tokenizer& tokenizer, const std::vector<std::string>& sentences) {
    if (csv.empty())
        return;
    CsvWriter writer(beside(csv, "attention"),
                     {"sentence", "target", "source", "row", "column", "weight"});
    for (std::size_t i = 0; i < std::min<std::size_t>(3, sentences.size()); i++)
        write_attention_of(writer, model, tokenizer, sentences[i]);
}

}  // namespace ddp
