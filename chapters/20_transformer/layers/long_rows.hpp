#pragma once
// The softmax of attention where rows are long: a block takes a row, and its threads share the
// keys. In attention.cu one thread takes a whole row. Neighbouring threads of a GPU then read
// numbers that are a row apart, each from a line of memory of its own, and a batch of few sentences
// has too few rows for all threads.
#include <limits>

#include "20_transformer/attention.hpp"

namespace ddp {

// Replaces each row of `scores` [sentences, heads, queries, keys] by its softmax over the keys that
// its query sees, and the others by 0. The results are those of attention_weights to 1e-6: the sum
// of a row is rounded in another order.
void softmax_by_block(const Tensor& scores, const AttentionMask& mask);

// Computes dscores = A (dA - sum of A dA), row by row, to 2e-6.
void softmax_backward_by_block(const Tensor& weights, const Tensor& dweights,
                               const Tensor& dscores);

// ---- What attention takes

// Rows of so many keys are long: on a GPU if a row has a number for each lane of a warp, and on a
// CPU never. There a block has one thread, whose loops are the same. (Forward took up to 2 % longer
// by block, for rows of 8 to 256 keys, in CPU seconds on a busy machine of two cores.)
#if defined(DDP_CUDA)
inline constexpr int long_row = 32;
#else
inline constexpr int long_row = std::numeric_limits<int>::max();
#endif

// Do the same if rows are long. Return false if they are not, and then do nothing.
inline bool softmax_of_long_rows(const Tensor& scores, const AttentionMask& mask) {
    const bool are_long = scores.dim(3) >= long_row;
    if (are_long)
        softmax_by_block(scores, mask);
    return are_long;
}
inline bool softmax_backward_of_long_rows(const Tensor& weights, const Tensor& dweights,
                                          const Tensor& dscores) {
    const bool are_long = weights.dim(3) >= long_row;
    if (are_long)
        softmax_backward_by_block(weights, dweights, dscores);
    return are_long;
}

}  // namespace ddp
