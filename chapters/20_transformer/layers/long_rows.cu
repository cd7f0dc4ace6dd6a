#include "20_transformer/layers/long_rows.hpp"

#include "02_kernels/block_reduce.cuh"
#include "02_kernels/support/block_sum.cuh"
#include "20_transformer/layers/exponential.cuh"
#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

struct ScoreRows {
    int heads, queries, keys;
    std::size_t rows;
};

ScoreRows rows_of(const Tensor& scores) {
    const int keys = scores.dim(3);
    return {scores.dim(1), scores.dim(2), keys, scores.size() / static_cast<std::size_t>(keys)};
}

// Does what masked_softmax of attention.cu does. All threads of a block have the same row, and so
// the same number of keys that its query sees: they meet at each combine_over_block.
__global__ void masked_softmax_by_block(ScoreRows s, const int* key_lengths, bool is_causal,
                                        float* scores) {
    for (std::size_t row : row_range(s.rows)) {
        float* weights = scores + row * s.keys;
        const int query = static_cast<int>(row % s.queries);
        int seen = key_lengths[row / s.queries / s.heads];
        if (is_causal && seen > query + 1)
            seen = query + 1;
        // The largest score, first of this thread's keys, then of all.
        const GridRange mine = column_range(seen);
        const std::size_t first = mine.first, last = mine.last, step = mine.step;
        float largest = neutral<ReduceOp::maximum, float>(), sum = 0.0f;
#pragma omp simd reduction(max : largest)
        for (std::size_t k = first; k < last; k += step)
            largest = weights[k] > largest ? weights[k] : largest;
        largest = combine_over_block<ReduceOp::maximum>(largest);
        // Then their sum.
#pragma omp simd reduction(+ : sum)
        for (std::size_t k = first; k < last; k += step) {
            weights[k] = exponential(weights[k] - largest);
            sum += weights[k];
        }
        const float inverse = 1.0f / sum_over_block(sum);
        for (std::size_t k : mine)
            weights[k] *= inverse;
        // Nothing of the keys that are masked.
        for (std::size_t k : column_range(s.keys - seen))
            weights[seen + k] = 0.0f;
    }
}

__global__ void softmax_gradient_by_block(ScoreRows s, const float* weights, const float* dweights,
                                          float* dscores) {
    for (std::size_t row : row_range(s.rows)) {
        const float* a = weights + row * s.keys;
        const float* da = dweights + row * s.keys;
        float* ds = dscores + row * s.keys;
        const float sum = sum_by_block<float>(s.keys, [=](std::size_t k) { return a[k] * da[k]; });
        for (std::size_t k : column_range(s.keys))
            ds[k] = a[k] * (da[k] - sum);
    }
}

}  // namespace

void softmax_by_block(const Tensor& scores, const AttentionMask& mask) {
    const ScoreRows s = rows_of(scores);
    launch(scores.device().stream(), rows_for(s.rows, static_cast<std::size_t>(s.keys)),
           masked_softmax_by_block, s, mask.key_lengths.data(), mask.is_causal, scores.data());
}

void softmax_backward_by_block(const Tensor& weights, const Tensor& dweights,
                               const Tensor& dscores) {
    const ScoreRows s = rows_of(weights);
    launch(weights.device().stream(), rows_for(s.rows, static_cast<std::size_t>(s.keys)),
           softmax_gradient_by_block, s, weights.data(), dweights.data(), dscores.data());
}

}  // namespace ddp
