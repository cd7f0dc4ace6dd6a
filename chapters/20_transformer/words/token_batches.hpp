#pragma once
// Which sentences a step trains on, and which of them each rank gets.
//
//     const BatchPlan plan(pairs, 64, seed, epoch);  // the same on all ranks
//     for (int i = 0; i < plan.batches(); i++)
//         train(plan.batch(i, rank, world_size));
#include <cstdint>
#include <span>
#include <vector>

namespace ddp {

struct TokenPair {
    std::vector<int> source, target;  // without begin and end
};

// One rank's share of a global batch, in the host's memory. Rows are padded with pad_token to
// `length`.
struct TokenBatch {
    int sentences = 0;
    // The longest row of the whole global batch, with the tokens that mark the ends. Dropout's
    // masks count places in rows, so they are the same with any number of ranks only if rows are.
    int length = 0;
    std::vector<int> source = {};      // [sentences, length]: the source, end
    std::vector<int> target_in = {};   // [sentences, length]: begin, the target
    std::vector<int> target_out = {};  // [sentences, length]: the target, end
    int target_tokens = 0;             // in this share's target_out, without padding
    // Target tokens of all ranks' shares of this step. Every rank knows the plan, so none has to
    // be asked.
    int all_target_tokens = 0;
};

// Returns the batch as a language model reads it: target_in has each source with its end, and
// behind it the old target_in; target_out has padding for the source, so it is not learned. Rows
// are twice as long, and `source` is all padding.
TokenBatch joined(const TokenBatch& batch);

// The sentences of one epoch, in global batches. Each sentence is in one of them, and which does
// not depend on the number of ranks: a training that goes on with more or fewer has the same global
// batches.
class BatchPlan {
  public:
    // Sentences are sorted by length among as many global batches as this.
    static constexpr int default_pool = 50;

    // Plans an epoch of global batches of `global_batch` sentences. What remains is spread over
    // them, so they may be a little larger, and there is only a smaller one if there are not as
    // many pairs. With a pool of 1 the lengths in a batch are as they come. `pairs` must outlive
    // the plan. Throws std::invalid_argument if there are no pairs, or if a number is below 1.
    BatchPlan(const std::vector<TokenPair>& pairs, int global_batch, std::uint64_t seed, int epoch,
              int pool = default_pool);

    int batches() const { return static_cast<int>(ranges_.size()); }
    // Returns the numbers of the pairs in global batch i.
    std::span<const int> samples(int i) const;
    int sentences_in(int i) const { return static_cast<int>(samples(i).size()); }

    // Returns a rank's share of global batch i: its samples rank, rank + world_size, rank + 2
    // world_size and so on, in this order. A rank may have one sentence more than another. Throws
    // std::invalid_argument if the global batch has not one for each rank, or there is no such
    // rank.
    TokenBatch batch(int i, int rank, int world_size) const;

    // Returns the share of padding in all rows of the epoch, from 0 to 1.
    double padding_share(int world_size) const;

  private:
    // The bounds of global batch i in samples_.
    struct Range {
        int begin, end;
    };

    const std::vector<TokenPair>& pairs_;
    std::vector<int> samples_;  // global batch by global batch
    std::vector<Range> ranges_;
};

// Returns the most places, sentences x length, that a rank's share of a global batch can have in
// any epoch of such plans.
std::size_t max_tokens_of_share(const std::vector<TokenPair>& pairs, int global_batch,
                                int world_size);

}  // namespace ddp
