// Twelve sentences by their lengths, a global batch of 4, a pool of 2 global batches, 2 ranks:
//
//     1. shuffle          5 9 2 7 3 8 6 2 | 4 9 5 3
//     2. sort each pool   2 2 3 5 6 7 8 9 | 3 4 5 9
//     3. cut              2 2 3 5    6 7 8 9    3 4 5 9
//     4. shuffle batches  6 7 8 9    3 4 5 9    2 2 3 5
//     5. deal the first   rank 0: 6 8           rank 1: 7 9
//
// A row is as long as the longest of its global batch, here 9 on both ranks, and what a sentence
// lacks is padding: computed with, and thrown away. Sentences of similar length need little of it.
// Without the pools the short ones would all come first, and an epoch would be as good as not
// shuffled.
//
// The ranks' shares have equally many sentences, but not equally many tokens: here 14 and 16. The
// mean over ranks of each rank's mean loss would count a token of rank 0 for more than one of
// rank 1. So a batch knows the tokens of all ranks, too, and a loss that is divided by
// all_target_tokens / world_size has the right mean after DDP has averaged: see token_loss.hpp.
#include "20_transformer/words/token_batches.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "03_network/loader.hpp"
#include "20_transformer/words/tokenizer.hpp"

namespace ddp {
namespace {

// Returns the length of a pair's row: its longer side, and the token that marks its end (or begin).
int row_length(const TokenPair& pair) {
    return static_cast<int>(std::max(pair.source.size(), pair.target.size())) + 1;
}

// Writes `first` (unless it is pad_token), the tokens and `last` (the same) to the front of a row.
void fill_row(std::span<int> row, int first, const std::vector<int>& tokens, int last) {
    auto place = row.begin();
    if (first != pad_token)
        *place++ = first;
    place = std::ranges::copy(tokens, place).out;
    if (last != pad_token)
        *place = last;
}

}  // namespace

TokenBatch joined(const TokenBatch& batch) {
    TokenBatch text = batch;
    text.length = 2 * batch.length;
    for (auto* rows : {&text.source, &text.target_in, &text.target_out})
        rows->assign(2 * batch.source.size(), pad_token);
    for (int first = 0; first < std::ssize(batch.source); first += batch.length) {
        const auto source = batch.source.begin() + first;
        const auto end = std::find(source, source + batch.length, pad_token);
        std::copy(source, end, text.target_in.begin() + 2 * first);
        const std::ptrdiff_t behind = 2 * first + (end - source);
        std::copy_n(batch.target_in.begin() + first, batch.length, text.target_in.begin() + behind);
        std::copy_n(batch.target_out.begin() + first, batch.length,
                    text.target_out.begin() + behind);
    }
    return text;
}

BatchPlan::BatchPlan(const std::vector<TokenPair>& pairs, int global_batch, std::uint64_t seed,
                     int epoch, int pool)
    : pairs_(pairs) {
    if (pairs.empty() || global_batch < 1 || pool < 1)
        throw std::invalid_argument("a plan needs a pair, a global batch and a pool");
    // 1. Shuffle. Seed and epoch decide, so all ranks have the same order without a message.
    const int count = static_cast<int>(pairs.size());
    samples_ = shuffled(count, seed, epoch);

    // 3. Cut: `count` sentences into equal parts, none of them smaller than the global batch. (The
    // places of the cuts are known before anything is sorted.)
    const int batches = std::max(1, count / global_batch);
    const auto cut = [&](int i) {
        return static_cast<int>(std::int64_t{count} * std::min(i, batches) / batches);
    };
    std::vector<Range> ranges;
    for (int i = 0; i < batches; i++)
        ranges.push_back({cut(i), cut(i + 1)});

    // 2. Sort each pool. Sentences of the same length stay shuffled.
    for (int first = 0; first < batches; first += pool)
        std::stable_sort(samples_.begin() + cut(first), samples_.begin() + cut(first + pool),
                         [&](int a, int b) {
                             return row_length(pairs[static_cast<std::size_t>(a)]) <
                                    row_length(pairs[static_cast<std::size_t>(b)]);
                         });

    // 4. Shuffle the batches: otherwise each pool would begin with its short sentences.
    for (const int i : shuffled(batches, seed, epoch))
        ranges_.push_back(ranges[static_cast<std::size_t>(i)]);
}

std::span<const int> BatchPlan::samples(int i) const {
    const Range range = ranges_.at(static_cast<std::size_t>(i));
    return std::span(samples_).subspan(static_cast<std::size_t>(range.begin),
                                       static_cast<std::size_t>(range.end - range.begin));
}

TokenBatch BatchPlan::batch(int i, int rank, int world_size) const {
    const std::span<const int> all = samples(i);
    if (rank < 0 || rank >= world_size)
        throw std::invalid_argument("there is no rank " + std::to_string(rank) + " in a world of " +
                                    std::to_string(world_size));
    if (std::ssize(all) < world_size)
        throw std::invalid_argument(
            "a global batch of " + std::to_string(all.size()) + " sentences has none for some of " +
            std::to_string(world_size) + " ranks: take larger batches or fewer ranks");
    // 5. Deal, like cards. In a sorted batch the shares have similar lengths, too.
    TokenBatch share;
    std::vector<const TokenPair*> own;
    for (std::size_t k = 0; k < all.size(); k++) {
        const TokenPair& pair = pairs_[static_cast<std::size_t>(all[k])];
        const int tokens = static_cast<int>(pair.target.size()) + 1;  // with its end
        share.all_target_tokens += tokens;
        share.length = std::max(share.length, row_length(pair));
        if (k % static_cast<std::size_t>(world_size) != static_cast<std::size_t>(rank))
            continue;
        own.push_back(&pair);
        share.target_tokens += tokens;
    }
    // Lay the sentences out in rows.
    share.sentences = static_cast<int>(own.size());
    const std::size_t length = static_cast<std::size_t>(share.length);
    for (std::vector<int>* rows : {&share.source, &share.target_in, &share.target_out})
        rows->assign(own.size() * length, pad_token);
    for (std::size_t row = 0; row < own.size(); row++) {
        const auto in = [&](std::vector<int>& rows) {
            return std::span(rows).subspan(row * length, length);
        };
        fill_row(in(share.source), pad_token, own[row]->source, end_token);
        fill_row(in(share.target_in), begin_token, own[row]->target, pad_token);
        fill_row(in(share.target_out), pad_token, own[row]->target, end_token);
    }
    return share;
}

double BatchPlan::padding_share(int world_size) const {
    std::int64_t places = 0, padding = 0;
    for (int i = 0; i < batches(); i++)
        for (int rank = 0; rank < world_size; rank++) {
            const TokenBatch share = batch(i, rank, world_size);
            for (const std::vector<int>* rows : {&share.source, &share.target_in}) {
                places += std::ssize(*rows);
                padding += std::ranges::count(*rows, pad_token);
            }
        }
    return static_cast<double>(padding) / static_cast<double>(places);
}

std::size_t max_tokens_of_share(const std::vector<TokenPair>& pairs, int global_batch,
                                int world_size) {
    const BatchPlan plan(pairs, global_batch, 0, 0);  // every epoch has batches of these sizes
    int sentences = 0, longest = 0;
    for (int i = 0; i < plan.batches(); i++)
        sentences = std::max(sentences, (plan.sentences_in(i) + world_size - 1) / world_size);
    for (const TokenPair& pair : pairs)
        longest = std::max(longest, row_length(pair));
    return static_cast<std::size_t>(sentences) * static_cast<std::size_t>(longest);
}

}  // namespace ddp
