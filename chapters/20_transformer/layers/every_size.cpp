#include "20_transformer/layers/every_size.hpp"

#include <set>
#include <utility>

#include "20_transformer/token_loss.hpp"
#include "20_transformer/translation_training.hpp"

namespace ddp {

void compute_every_size(Rank& rank, const std::vector<TokenPair>& pairs,
                        const TransformerOptions& options, int most_sentences) {
    rank.select_device();
    auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
    DropoutMasks masks(1);
    Random weights(1);
    Transformer model(device, options, weights, masks);
    Tape tape(device);
    std::set<std::pair<int, int>> sizes;  // sentences, length
    for (const TokenPair& pair : pairs)
        for (int sentences = 1; sentences <= most_sentences; sentences++) {
            const std::vector<TokenPair> copies(static_cast<std::size_t>(sentences), pair);
            const TokenBatch batch = BatchPlan(copies, sentences, 0, 0).batch(0, 0, 1);
            if (!sizes.emplace(sentences, batch.length).second)
                continue;
            masks.begin({.step = 0, .samples = sentences, .first = 0, .stride = 1});
            const DeviceBatch tokens = to_device(device, batch);
            const Variable scores = model.forward(tape, tokens.source, tokens.target_in);
            tape.backward(token_loss(scores, tokens.target_out, 0.0, 1.0));
            tape.clear();
        }
    device.stream().synchronize();
}

}  // namespace ddp
