// The exercise ring_attention, beside one rank that has the whole sequence.
#include "exercises/24_mesh/ring_attention.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

using Numbers = std::vector<float>;

std::string to_string(const Numbers& numbers) {
    std::string text;
    for (const float number : numbers)
        text += (text.empty() ? "" : ", ") + std::to_string(number);
    return text;
}
bool are_close(const Numbers& a, const Numbers& b) {
    return std::ranges::equal(a, b, [](float x, float y) { return std::abs(x - y) <= 1e-3f; });
}

void check_merge(const SoftmaxPart& a, const SoftmaxPart& b, const SoftmaxPart& right) {
    const auto text = [](const SoftmaxPart& part) {
        return "(max " + std::to_string(part.max) + ", sum " + std::to_string(part.sum) +
               ", values " + to_string(part.values) + ")";
    };
    const std::string parts = text(a) + " and " + text(b);
    trying(parts);
    const SoftmaxPart yours = merge_parts(a, b);
    const auto is = [&](float sum, const Numbers& values) {
        return are_close({yours.max, yours.sum}, {right.max, sum}) &&
               are_close(yours.values, values);
    };
    if (is(right.sum, right.values))
        return;
    throw Wrong(parts + " are together " + text(right) + ". You return " + text(yours) + ".\n" +
                (is(a.sum + b.sum, {a.values[0] + b.values[0], a.values[1] + b.values[1]})
                     ? "Each part has subtracted a max of its own: rescale first."
                 : std::isfinite(yours.sum)
                     ? "Scale sum and values by e^(the part's max - the larger max)."
                     : "e^100 is too large for a float: subtract the larger max first."));
}

// Returns the right result of a rank; or what it is if queries see all of later blocks,
// or of other blocks as much as of their own.
Numbers attention(const std::vector<TokenBlock>& blocks, std::size_t rank, bool sees_later = false,
                  bool is_within_blocks = false) {
    Numbers result;
    const auto tokens = static_cast<std::size_t>(blocks[rank].tokens),
               width = static_cast<std::size_t>(blocks[rank].width);
    for (std::size_t query = 0; query < tokens; query++) {
        std::vector<double> sums(width + 1);
        for (std::size_t place = 0; place < blocks.size() * tokens; place++) {
            const std::size_t other = place / tokens, key = place % tokens;
            if (other == rank || is_within_blocks ? key > query : other > rank && !sees_later)
                continue;
            double score = 0;
            for (std::size_t i = 0; i < width; i++)
                score +=
                    blocks[rank].queries[query * width + i] * blocks[other].keys[key * width + i];
            const double weight = std::exp(score / std::sqrt(static_cast<double>(width)));
            for (std::size_t i = 0; i < width; i++)
                sums[i] += weight * blocks[other].values[key * width + i];
            sums[width] += weight;
        }
        for (std::size_t i = 0; i < width; i++)
            result.push_back(static_cast<float>(sums[i] / sums[width]));
    }
    return result;
}

// Runs each rank with its own block alone, and once more with the others' blocks.
std::vector<Numbers> run_ring(const std::vector<TokenBlock>& blocks) {
    const std::size_t ranks = blocks.size();
    std::vector<Numbers> sent(ranks), results;
    const auto run = [&](std::size_t rank, const Shift& shift) {
        return ring_attention(blocks[rank], static_cast<int>(rank), static_cast<int>(ranks), shift);
    };
    for (std::size_t r = 0; r < ranks; r++)
        run(r, [&](const Numbers& numbers) { return sent[r] = numbers; });
    for (std::size_t r = 0; r < ranks; r++) {
        const std::string who = "Of " + std::to_string(ranks) + " ranks, rank " + std::to_string(r);
        std::size_t calls = 0;
        Numbers received = sent[r];
        results.push_back(run(r, [&](const Numbers& numbers) {
            if (numbers != received)
                throw Wrong(who + " doesn't pass on the block that it has received.");
            calls++;
            return received = sent[(r + ranks - calls % ranks) % ranks];
        }));
        if (calls + 1 != ranks)
            throw Wrong(who + " calls shift " + std::to_string(calls) +
                        " times. After ranks - 1 every block has been everywhere.");
    }
    return results;
}

void check_ring(int ranks, int tokens, int width, float scale) {
    const std::string about =
        std::to_string(ranks) + " ranks, " + std::to_string(tokens) + " tokens each: ";
    trying(about);
    std::vector<TokenBlock> blocks(static_cast<std::size_t>(ranks), {tokens, width, {}, {}, {}});
    float x = 0;
    for (TokenBlock& block : blocks)
        for (int i = 0; i < tokens * width; i++, x++) {
            block.queries.push_back(scale * std::sin(1.7f * x));
            block.keys.push_back(std::cos(2.3f * x));
            block.values.push_back(std::sin(0.9f * x));
        }
    const std::vector<Numbers> all = run_ring(blocks);
    for (std::size_t rank = 0; rank < all.size(); rank++) {
        const Numbers& yours = all[rank];
        const Numbers right = attention(blocks, rank);
        if (!are_close(yours, right))
            throw Wrong(about + "rank " + std::to_string(rank) + " returns " + to_string(yours) +
                        ", and one rank alone finds " + to_string(right) + ".\n" +
                        (are_close(yours, attention(blocks, rank, true, false))
                             ? "Queries see later ranks' blocks: mask those, too."
                         : are_close(yours, attention(blocks, rank, false, true))
                             ? "You compare places in two blocks: add rank * tokens."
                             : "After k shifts, whose block is here? Is the score query key / "
                               "sqrt(width)?"));
    }
}

}  // namespace

std::vector<Task> tasks() {
    return {{"merge_parts",
             [] {
                 const float ln2 = std::log(2.0f);
                 check_merge({0, 1, {10, 1}}, {ln2, 2, {60, 2}}, {ln2, 2.5f, {65, 2.5f}});
                 check_merge({9 + ln2, 1.5f, {3, 4}}, {9, 2, {8, 2}}, {9 + ln2, 2.5f, {7, 5}});
                 check_merge({.values = {0, 0}}, {-5, 2, {3, 1}}, {-5, 2, {3, 1}});
                 check_merge({250, 2, {9, 3}}, {300, 3, {4, 5}}, {300, 3, {4, 5}});
             }},
            {"ring", [] {
                 check_ring(2, 2, 3, 1);
                 check_ring(1, 3, 2, 1);
                 check_ring(5, 2, 4, 1);
                 check_ring(3, 4, 3, 200);
             }}};
}

}  // namespace ddp::test
