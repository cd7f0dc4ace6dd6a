#include "20_transformer/layers/tokens.hpp"

#include <algorithm>
#include <stdexcept>

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

TokenSlots::TokenSlots(Device& device, std::size_t max_tokens) : device_(device) {
    for (Slot& slot : slots_)
        slot.host = PinnedBuffer<int>(3 * max_tokens);
}

DeviceBatch TokenSlots::to_device(const TokenBatch& batch) {
    Slot& slot = slots_[next_++ % slots_.size()];
    const std::size_t places = batch.source.size();
    const std::size_t all = places + batch.target_in.size() + batch.target_out.size();
    if (all > slot.host.size())
        throw std::invalid_argument("a batch of " + std::to_string(all) +
                                    " tokens does not fit into a slot for " +
                                    std::to_string(slot.host.size()));
    // 1. Wait until the slot's last copy is done, and lay the three arrays side by side.
    slot.copied.synchronize();
    int* place = slot.host.data();
    for (const std::vector<int>* tokens : {&batch.source, &batch.target_in, &batch.target_out})
        place = std::ranges::copy(*tokens, place).out;
    // 2. Enqueue one copy for all of them, and mark its end.
    const Tokens copy(device_, {static_cast<int>(all)});
    DDP_CHECK(cudaMemcpyAsync(copy.data(), slot.host.data(), copy.bytes(), cudaMemcpyHostToDevice,
                              device_.stream()));
    slot.copied.record(device_.stream());
    // 3. Each tensor is a view of a third.
    const Shape rows{batch.sentences, batch.length};
    DeviceBatch tokens{copy.view(0, rows), copy.view(places, rows), {}};
    if (!batch.target_out.empty())
        tokens.target_out = copy.view(2 * places, {batch.sentences * batch.length});
    return tokens;
}

Tokens padded(Device& device, const std::vector<std::vector<int>>& rows) {
    const std::size_t length = std::ranges::max(rows, {}, &std::vector<int>::size).size();
    std::vector<int> tokens;
    for (std::vector<int> row : rows) {
        row.resize(length, pad_token);
        tokens.insert(tokens.end(), row.begin(), row.end());
    }
    return Tokens(device, {static_cast<int>(rows.size()), static_cast<int>(length)}, tokens);
}

Labels lengths_without_padding(const Tokens& tokens) {
    const int sentences = tokens.dim(0);
    const Labels lengths(tokens.device(), {sentences});
    launch(tokens.device().stream(), grid_for(sentences), measure_sentences, sentences,
           tokens.dim(1), tokens.data(), lengths.data());
    return lengths;
}

}  // namespace ddp
