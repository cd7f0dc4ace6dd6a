#include "20_transformer/layers/token_rows.hpp"

#include "20_transformer/words/tokenizer.hpp"
#include "common/gpu/gpu.hpp"
#include "common/gpu/rows.hpp"

namespace ddp {
namespace {

__global__ void copy_token_rows(int sentences, int length, int row, const float* tokens,
                                float* rows) {
    for (std::size_t sentence : row_range(sentences))
        for (std::size_t i : column_range(length))
            rows[sentence * length + i] = tokens[(2 * sentence + row) * length + i];
}

// Finds the last token that is not padding, from the end. One thread takes a whole sentence.
__global__ void measure_sentences(int sentences, int length, const float* tokens, int* lengths) {
    for (std::size_t sentence : grid_range(sentences)) {
        int tokens_left = length;
        while (tokens_left > 0 &&
               static_cast<int>(tokens[sentence * length + tokens_left - 1]) == pad_token)
            tokens_left--;
        lengths[sentence] = tokens_left;
    }
}

}  // namespace

Tensor token_rows(const Tensor& tokens, int row) {
    const int sentences = tokens.dim(0), length = tokens.dim(2);
    const Tensor rows(tokens.device(), {sentences, length});
    launch(tokens.device().stream(), rows_for(sentences, length), copy_token_rows, sentences,
           length, row, tokens.data(), rows.data());
    return rows;
}

Labels lengths_without_padding(const Tensor& tokens) {
    const int sentences = tokens.dim(0);
    const Labels lengths(tokens.device(), {sentences});
    launch(tokens.device().stream(), grid_for(sentences), measure_sentences, sentences,
           tokens.dim(1), tokens.data(), lengths.data());
    return lengths;
}

}  // namespace ddp
