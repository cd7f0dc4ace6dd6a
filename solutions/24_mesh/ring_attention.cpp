// The exercise ring_attention: keys and values go round, queries stay. Read
// exercises/24_mesh/README.md first.
#include "exercises/24_mesh/ring_attention.hpp"

#include <algorithm>
#include <cmath>

namespace ddp {

SoftmaxPart merge_parts(const SoftmaxPart& a, const SoftmaxPart& b) {
    // stub: merge_parts
    //: Both sums are of e^(score - max), but each has a max of its own.
    SoftmaxPart both{std::max(a.max, b.max), 0, std::vector<float>(a.values.size())};
    for (const SoftmaxPart* part : {&a, &b}) {
        const float scale = std::exp(part->max - both.max);
        both.sum += scale * part->sum;
        for (std::size_t i = 0; i < both.values.size(); i++)
            both.values[i] += scale * part->values[i];
    }
    return both;
    // end stub
}

// stub
namespace {

// Returns `part` with one more key: `block` has the keys and then the values of all its tokens.
SoftmaxPart with_key(const SoftmaxPart& part, const TokenBlock& own, int query,
                     const std::vector<float>& block, int key) {
    float score = 0;
    for (int i = 0; i < own.width; i++)
        score += own.queries[static_cast<std::size_t>(query * own.width + i)] *
                 block[static_cast<std::size_t>(key * own.width + i)];
    score /= std::sqrt(static_cast<float>(own.width));
    const auto value = block.begin() + (own.tokens + key) * own.width;
    return merge_parts(part, {score, 1, {value, value + own.width}});
}

}  // namespace

// end stub
std::vector<float> ring_attention(const TokenBlock& own, int rank, int ranks, const Shift& shift) {
    // stub: ring
    //: Whose keys are here after k shifts? Which of them may a query see?
    std::vector<float> block = own.keys;
    block.insert(block.end(), own.values.begin(), own.values.end());
    std::vector<SoftmaxPart> parts(static_cast<std::size_t>(own.tokens));
    for (SoftmaxPart& part : parts)
        part.values.resize(static_cast<std::size_t>(own.width));
    for (int k = 0; k < ranks; k++) {
        if (k > 0)
            block = shift(block);
        const int owner = (rank - k + ranks) % ranks;
        for (int query = 0; query < own.tokens; query++)
            for (int key = 0; key < own.tokens; key++)
                if (owner * own.tokens + key <= rank * own.tokens + query) {
                    SoftmaxPart& part = parts[static_cast<std::size_t>(query)];
                    part = with_key(part, own, query, block, key);
                }
    }
    std::vector<float> result;
    for (const SoftmaxPart& part : parts)
        for (const float value : part.values)
            result.push_back(value / part.sum);
    return result;
    // end stub
}

}  // namespace ddp
