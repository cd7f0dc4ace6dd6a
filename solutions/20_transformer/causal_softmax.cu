// The exercise causal_softmax: softmax of a row whose largest score is not known yet. Read
// exercises/20_transformer/README.md first.
#include "exercises/20_transformer/causal_softmax.hpp"

#include <cmath>

namespace ddp {
namespace {

// stub
//: Your kernel goes here. A function that host and device use begins with __host__ __device__;
//: grid_range(rows) gives each thread rows of its own.

__host__ __device__ SoftmaxSums together(SoftmaxSums a, SoftmaxSums b) {
    const float largest = a.largest > b.largest ? a.largest : b.largest;
    return {largest, a.sum * expf(a.largest - largest) + b.sum * expf(b.largest - largest)};
}

__global__ void softmax_rows(Scores scores, Weights weights, ScoreShape shape,
                             const int* key_lengths, bool is_causal) {
    const std::size_t rows =
        static_cast<std::size_t>(shape.sentences) * shape.heads * shape.queries;
    for (std::size_t row : grid_range(rows)) {
        // How many of the first keys does this query see?
        const int query = static_cast<int>(row % shape.queries);
        int seen = key_lengths[row / shape.queries / shape.heads];
        if (is_causal && seen > query + 1)
            seen = query + 1;
        // One pass for both the largest and the sum.
        const std::size_t first = row * shape.keys;
        SoftmaxSums sums;
        for (int k = 0; k < seen; k++)
            sums = together(sums, {scores.read(first + k), 1.0f});
        // And one that writes.
        for (int k = 0; k < seen; k++)
            weights.write(first + k, expf(scores.read(first + k) - sums.largest) / sums.sum);
        for (int k = seen; k < shape.keys; k++)
            weights.write(first + k, 0.0f);
    }
}
// end stub

}  // namespace

SoftmaxSums merged(SoftmaxSums a, SoftmaxSums b) {
    // stub: merge
    //: Which largest score should both sums be relative to?
    return together(a, b);
    // end stub
}

void causal_softmax(const Scores& scores, const Weights& weights, const ScoreShape& shape,
                    const int* key_lengths, bool is_causal, Stream& stream) {
    // stub: softmax
    //: launch(stream, grid_for(rows), kernel, arguments...);
    const std::size_t rows =
        static_cast<std::size_t>(shape.sentences) * shape.heads * shape.queries;
    launch(stream, grid_for(rows), softmax_rows, scores, weights, shape, key_lengths, is_causal);
    // end stub
}

}  // namespace ddp
