#pragma once
// Exercise causal_softmax: attention's softmax, in one pass that reads and one that writes.
//
//     scores of one sentence      weights of its 3 keys if causal, with a length of 2
//     query 0    0 0 0            1    0    0
//     query 1    0 0 0            1/2  1/2  0        sees keys 0 and 1
//     query 2    0 0 0            1/2  1/2  0        key 2 is padding
//
// You may call: scores.read(i), weights.write(i, value); and launch(stream, grid_for(rows), kernel,
// arguments...), grid_range(rows), expf(), fmaxf().
// The check also tries: several heads, scores about 1000 and -1000, NaN in what no query sees.
#include <limits>

#include "exercises/not_implemented.hpp"
#include "exercises/support/counted.hpp"

namespace ddp {

// Some of a row's scores: the largest one, and the sum of exp(score - largest) over them.
struct SoftmaxSums {
    float largest = -std::numeric_limits<float>::infinity();
    float sum = 0.0f;  // of no scores
};

// Task merge. Returns the same of both sides' scores: {3, 1} and {2, 1} make {3, 1 + e^(2-3)}. One
// side may have no scores.
SoftmaxSums merged(SoftmaxSums a, SoftmaxSums b);

// Element [s, h, q, k] has the index ((s * heads + h) * queries + q) * keys + k.
struct ScoreShape {
    int sentences, heads, queries, keys;
};
using Scores = CountedReads;
using Weights = CountedWrites;

// Task softmax. Enqueues the softmax of each row [s, h, q, :] over the keys that query q of
// sentence s sees: k < key_lengths[s], which is 1 or more, and k <= q if `is_causal`. The weights
// of all other keys are 0. Each score is read at most twice, each weight is written once.
void causal_softmax(const Scores& scores, const Weights& weights, const ScoreShape& shape,
                    const int* key_lengths, bool is_causal, Stream& stream);

}  // namespace ddp
