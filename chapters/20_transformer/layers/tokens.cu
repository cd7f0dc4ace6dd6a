#include "20_transformer/layers/tokens.hpp"

#include "20_transformer/words/tokenizer.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// Finds the last token that is not padding, from the end. One thread takes a whole sentence.
__global__ void measure_sentences(int sentences, int length, const int* tokens, int* lengths) {
    for (std::size_t sentence : grid_range(sentences)) {
        int tokens_left = length;
        while (tokens_left > 0 && tokens[sentence * length + tokens_left - 1] == pad_token)
            tokens_left--;
        lengths[sentence] = tokens_left;
    }
}

}  // namespace

DeviceBatch to_device(Device& device, const TokenBatch& batch) {
    const Shape rows{batch.sentences, batch.length};
    DeviceBatch tokens{{device, rows, batch.source}, {device, rows, batch.target_in}, {}};
    if (!batch.target_out.empty())
        tokens.target_out = Labels(device, {batch.sentences * batch.length}, batch.target_out);
    return tokens;
}

Labels lengths_without_padding(const Tokens& tokens) {
    const int sentences = tokens.dim(0);
    const Labels lengths(tokens.device(), {sentences});
    launch(tokens.device().stream(), grid_for(sentences), measure_sentences, sentences,
           tokens.dim(1), tokens.data(), lengths.data());
    return lengths;
}

}  // namespace ddp
