#pragma once
// The contract of the exercise causal_softmax: the softmax of attention in one pass over the scores
// and one to write (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).
#include <cstddef>
#include <limits>

#include "common/gpu/gpu.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// All that has to be known of some of a row's scores: the largest one, and the sum of exp(score -
// largest) over them. Of no scores at all these are minus infinity and 0.
struct SoftmaxSums {
    float largest = -std::numeric_limits<float>::infinity();
    float sum = 0.0f;
};

// Task merge. Returns the same of the scores of `a` and of `b` together; either or both may have
// none.
SoftmaxSums merged(SoftmaxSums a, SoftmaxSums b);

// The scores in device memory, each of which costs a read. `reads` has a counter for each score, or
// is nullptr.
class Scores {
  public:
    explicit Scores(const float* values, unsigned int* reads = nullptr)
        : values_(values), reads_(reads) {}
    __device__ float read(std::size_t i) const {
        if (reads_ != nullptr)
            atomicAdd(&reads_[i], 1u);
        return values_[i];
    }

  private:
    const float* values_;
    unsigned int* reads_;
};

// The weights in device memory, which can only be written. `writes` has a counter for each weight,
// or is nullptr.
class Weights {
  public:
    explicit Weights(float* values, unsigned int* writes = nullptr)
        : values_(values), writes_(writes) {}
    __device__ void write(std::size_t i, float value) const {
        if (writes_ != nullptr)
            atomicAdd(&writes_[i], 1u);
        values_[i] = value;
    }

  private:
    float* values_;
    unsigned int* writes_;
};

// The shape of scores and weights, each of the four 1 or more. Element [s, h, q, k] has the index
// ((s * heads + h) * queries + q) * keys + k, which is less than 2^31.
struct ScoreShape {
    int sentences, heads, queries, keys;
};

// Task softmax. Enqueues, in ONE launch, the softmax of each row [s, h, q, :] over the keys that
// query q of sentence s sees:
//
//     k < key_lengths[s]        the keys behind are padding; a length is 0 to `keys`
//     k <= q                    only if is_causal
//
// The weights of all other keys are 0, and a row that sees no key has zeros only. Each score that
// is seen is finite, and is read at most twice; the others, which may be NaN, are not read; each
// weight is written once. `key_lengths` is in device memory. The result is right for any grid of
// any blocks. A thread needs no more memory where there are more keys. The host does not wait.
void causal_softmax(const Scores& scores, const Weights& weights, const ScoreShape& shape,
                    const int* key_lengths, bool is_causal, Stream& stream);

}  // namespace ddp
