// Batches of similar length: every sentence once, the same global batches for any number of ranks,
// and rows that hold what they should.
#include "20_transformer/words/token_batches.hpp"

#include <algorithm>
#include <set>

#include "20_transformer/words/tokenizer.hpp"
#include "common/data/random.hpp"
#include "tests/support/catch.hpp"

namespace ddp::test {
namespace {

// Pair i has tokens that encode i, and sides of 1 to 40 and 1 to 46 tokens.
std::vector<TokenPair> numbered_pairs(int count) {
    Random random(4);
    std::vector<TokenPair> pairs;
    for (int i = 0; i < count; i++) {
        const std::size_t length = 1 + random.below(40);
        pairs.push_back({std::vector<int>(length, 10 + i),
                         std::vector<int>(length + random.below(7), 100'000 + i)});
    }
    return pairs;
}

std::vector<int> sorted(std::span<const int> numbers) {
    std::vector<int> copy(numbers.begin(), numbers.end());
    std::ranges::sort(copy);
    return copy;
}

// Returns the rows of one tensor of a batch, without padding.
std::vector<std::vector<int>> rows_of(const TokenBatch& batch, const std::vector<int>& tensor) {
    REQUIRE(std::ssize(tensor) == batch.sentences * batch.length);
    std::vector<std::vector<int>> rows;
    for (auto row = tensor.begin(); row != tensor.end(); row += batch.length) {
        const auto end = std::find(row, row + batch.length, pad_token);
        REQUIRE(std::count(end, row + batch.length, pad_token) == row + batch.length - end);
        rows.emplace_back(row, end);
    }
    return rows;
}

}  // namespace

TEST_CASE("batches: 1 to 8 ranks see every sentence once, in the same global batches") {
    const std::vector<TokenPair> pairs = numbered_pairs(517);
    const BatchPlan plan(pairs, 16, 3, 2);
    REQUIRE(plan.batches() == 32);
    for (int world_size = 1; world_size <= 8; world_size++) {
        std::multiset<int> seen;
        for (int i = 0; i < plan.batches(); i++) {
            std::vector<int> together;
            int tokens = 0, all_tokens = 0;
            for (int rank = 0; rank < world_size; rank++) {
                const TokenBatch batch = plan.batch(i, rank, world_size);
                for (const std::vector<int>& row : rows_of(batch, batch.source))
                    together.push_back(row[0] - 10);
                tokens += batch.target_tokens;
                REQUIRE((rank == 0 || batch.all_target_tokens == all_tokens));
                all_tokens = batch.all_target_tokens;
            }
            CAPTURE(world_size, i);
            REQUIRE(tokens == all_tokens);
            REQUIRE((plan.sentences_in(i) == 16 || plan.sentences_in(i) == 17));
            REQUIRE(sorted(together) == sorted(plan.samples(i)));
            seen.insert(together.begin(), together.end());
        }
        REQUIRE(seen.size() == 517);
        REQUIRE(std::set<int>(seen.begin(), seen.end()).size() == 517);
    }
}

TEST_CASE("batches: a rank's rows are samples rank, rank + W, ..., with their ends marked") {
    const std::vector<TokenPair> pairs = numbered_pairs(61);
    const BatchPlan plan(pairs, 20, 1, 0);
    for (int i = 0; i < plan.batches(); i++)
        for (int rank = 0; rank < 3; rank++) {
            const TokenBatch batch = plan.batch(i, rank, 3);
            const auto source = rows_of(batch, batch.source);
            const auto in = rows_of(batch, batch.target_in);
            const auto out = rows_of(batch, batch.target_out);
            int tokens = 0, longest = 0;
            for (const int sample : plan.samples(i))  // of all ranks: rows are as long on each
                for (const auto& side : {pairs[static_cast<std::size_t>(sample)].source,
                                         pairs[static_cast<std::size_t>(sample)].target})
                    longest = std::max(longest, static_cast<int>(side.size()) + 1);
            for (int row = 0; row < batch.sentences; row++) {
                const int sample = plan.samples(i)[static_cast<std::size_t>(rank + 3 * row)];
                TokenPair pair = pairs[static_cast<std::size_t>(sample)];
                const auto at = static_cast<std::size_t>(row);
                pair.source.push_back(end_token);
                REQUIRE(source[at] == pair.source);
                pair.target.push_back(end_token);
                REQUIRE(out[at] == pair.target);
                tokens += static_cast<int>(pair.target.size());
                pair.target.pop_back();
                pair.target.insert(pair.target.begin(), begin_token);
                REQUIRE(in[at] == pair.target);
            }
            REQUIRE(batch.target_tokens == tokens);
            REQUIRE(batch.length == longest);
            REQUIRE(rank + 3 * batch.sentences >= plan.sentences_in(i));
        }
}

TEST_CASE("batches: another epoch or seed is another order; the same ones are the same") {
    const std::vector<TokenPair> pairs = numbered_pairs(300);
    const auto batch_of = [&](std::uint64_t seed, int epoch) {
        return BatchPlan(pairs, 8, seed, epoch).batch(0, 0, 2).source;
    };
    REQUIRE(batch_of(1, 0) == batch_of(1, 0));
    REQUIRE(batch_of(1, 0) != batch_of(1, 1));
    REQUIRE(batch_of(1, 0) != batch_of(2, 0));
    // Short batches and long ones take turns: the lengths of neighbours differ both ways.
    const BatchPlan plan(pairs, 8, 1, 0);
    int rises = 0;
    for (int i = 0; i + 1 < plan.batches(); i++)
        rises += plan.batch(i, 0, 1).length < plan.batch(i + 1, 0, 1).length;
    REQUIRE((rises > 10 && rises < 27));
}

TEST_CASE("batches: short and long ones come in another order in each epoch") {
    std::vector<TokenPair> pairs;
    for (std::size_t i = 0; i < 80; i++)
        pairs.push_back({{}, std::vector<int>(i % 10, 5)});
    const auto lengths = [&](int epoch) {
        const BatchPlan plan(pairs, 8, 1, epoch);
        std::vector<int> all;
        for (int i = 0; i < plan.batches(); i++)
            all.push_back(plan.batch(i, 0, 1).length);
        return all;
    };
    REQUIRE(sorted(lengths(0)) == std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
    REQUIRE(lengths(0) != lengths(1));
}

TEST_CASE("batches of similar length need a fraction of the padding") {
    const std::vector<TokenPair> pairs = numbered_pairs(4000);
    const double unsorted = BatchPlan(pairs, 32, 1, 0, 1).padding_share(4);
    const double sorted = BatchPlan(pairs, 32, 1, 0).padding_share(4);
    CAPTURE(unsorted, sorted);
    REQUIRE(unsorted > 0.35);
    REQUIRE(sorted < 0.1);
}

TEST_CASE("batches: no share is larger than foretold, and in some epoch one is as large") {
    const std::vector<TokenPair> pairs = numbered_pairs(30);
    for (const int world_size : {1, 2, 3, 7}) {
        std::size_t largest = 0;
        for (int epoch = 0; epoch < 40; epoch++) {
            const BatchPlan plan(pairs, 7, 1, epoch);
            for (int i = 0; i < plan.batches(); i++)
                for (int rank = 0; rank < world_size; rank++)
                    largest = std::max(largest, plan.batch(i, rank, world_size).source.size());
        }
        REQUIRE(max_tokens_of_share(pairs, 7, world_size) == largest);
    }
}

TEST_CASE("batches: what cannot be dealt is refused") {
    const std::vector<TokenPair> pairs = numbered_pairs(7);
    REQUIRE_THROWS_WITH(BatchPlan({}, 4, 1, 0), "a plan needs a pair, a global batch and a pool");
    REQUIRE_THROWS_WITH(BatchPlan(pairs, 0, 1, 0),
                        "a plan needs a pair, a global batch and a pool");
    const BatchPlan small(pairs, 4, 1, 0), all(pairs, 100, 1, 0);
    REQUIRE(small.batches() == 1);  // of 7: 3 sentences would be less than a global batch
    REQUIRE(all.sentences_in(0) == 7);
    REQUIRE(all.batch(0, 6, 7).sentences == 1);
    REQUIRE_THROWS_WITH(all.batch(0, 0, 8),
                        "a global batch of 7 sentences has none for some of 8 ranks: take larger "
                        "batches or fewer ranks");
    REQUIRE_THROWS_WITH(all.batch(0, 2, 2), "there is no rank 2 in a world of 2");
}

}  // namespace ddp::test
