#pragma once
// Exercise ring_attention: attention over a sequence that no rank has whole.
//
//     scores of one query   0 | ln 2 ln 2     values   10 | 20 40      (two ranks' keys)
//     part of block 0       max 0      sum 1    values 10
//     part of block 1       max ln 2   sum 2    values 60              e^(ln 2 - ln 2) = 1 each
//     both                  max ln 2   sum 2.5  values 65              26 after softmax: 65 / 2.5
//
// The check also tries: one rank, five ranks, scores of some hundreds, a part without keys.
#include <functional>
#include <limits>
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// Softmax of one query over the keys that it has seen so far; none at first.
struct SoftmaxPart {
    float max = -std::numeric_limits<float>::infinity();  // of the scores
    float sum = 0;                                        // of e^(score - max)
    std::vector<float> values;                            // sum of e^(score - max) * value
};

// Task merge_parts. Returns the part over the keys of both; at least one of them has keys. Both
// have as many values.
SoftmaxPart merge_parts(const SoftmaxPart& a, const SoftmaxPart& b);

// Row by row, `width` numbers for each token.
struct TokenBlock {
    int tokens, width;
    std::vector<float> queries, keys, values;
};

// Sends the numbers to the next rank, from the last one to rank 0, and returns what the rank before
// has sent. All ranks call it together.
using Shift = std::function<std::vector<float>(const std::vector<float>& numbers)>;

// Task ring. Rank r has tokens r * tokens, ..., (r + 1) * tokens - 1 of the sequence. Returns, for
// each token of this rank, softmax(query key / sqrt(width)) value over all tokens of the sequence
// up to the token itself. Every rank calls `shift` ranks - 1 times, with the keys and values of one
// block.
std::vector<float> ring_attention(const TokenBlock& own, int rank, int ranks, const Shift& shift);

}  // namespace ddp
