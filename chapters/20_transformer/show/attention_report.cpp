#include "20_transformer/show/attention_report.hpp"

#include <algorithm>
#include <stdexcept>

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

}  // namespace

AttentionPicture attention_of(Transformer& model, const Tokenizer& tokenizer,
                              const std::string& sentence) {
    const TokenPair pair{tokenizer.encode(sentence),
                         translate(model, {tokenizer.encode(sentence)}).front()};
    AttentionPicture picture{
        spellings(tokenizer, pair.source), spellings(tokenizer, pair.target), {}};
    // A forward of the whole pair leaves the weights on the tape.
    const std::vector<TokenPair> pairs{pair};
    const TokenBatch batch = BatchPlan(pairs, 1, 0, 0).batch(0, 0, 1);
    Device& device = model.parameters().front()->value.device();
    Tape tape(device);
    const DeviceBatch tokens = to_device(device, batch);
    model.forward(tape, tokens.source, tokens.target_in);
    const Tensor weights =
        value_on(tape, "decoder.layers." + std::to_string(model.options().layers - 1) +
                           ".multihead_attn.weights");
    const std::vector<float> values = weights.to_host();  // [1, heads, length, length]
    const std::size_t heads = static_cast<std::size_t>(model.options().heads);
    const std::size_t length = static_cast<std::size_t>(batch.length);
    for (std::size_t query = 0; query < picture.target.size(); query++) {
        std::vector<float> row(picture.source.size());
        for (std::size_t head = 0; head < heads; head++)
            for (std::size_t key = 0; key < row.size(); key++)
                row[key] +=
                    values[(head * length + query) * length + key] / static_cast<float>(heads);
        picture.weights.push_back(row);
    }
    return picture;
}

void write_attention(const std::filesystem::path& csv, Transformer& model,
                     const Tokenizer& tokenizer, const std::vector<std::string>& sentences) {
    CsvWriter writer(beside(csv, "attention"),
                     {"sentence", "target", "source", "row", "column", "weight"});
    if (csv.empty())
        return;
    for (std::size_t i = 0; i < std::min<std::size_t>(3, sentences.size()); i++) {
        const std::string& sentence = sentences[i];
        const AttentionPicture picture = attention_of(model, tokenizer, sentence);
        for (std::size_t row = 0; row < picture.target.size(); row++)
            for (std::size_t column = 0; column < picture.source.size(); column++)
                writer.row({sentence, picture.target[row], picture.source[column], row, column,
                            static_cast<double>(picture.weights[row][column])});
    }
}

}  // namespace ddp
