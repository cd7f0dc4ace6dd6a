// Scaled dot-product attention. One head of one sentence of four tokens, whose last one is padding.
// A row is a query, a column is a key; x is a score, . is masked:
//
//     scores = Q K^T / sqrt(head width)
//
//       encoder (padding)     decoder (causal)     decoder over encoder
//           0 1 2 pad             0 1 2 pad            0 1 2 pad   keys of the source
//        0  x x x .            0  x . . .           0  x x x .
//        1  x x x .            1  x x . .           1  x x x .
//        2  x x x .            2  x x x .           2  x x x .
//       pad x x x .           pad x x x .          pad x x x .
//
//     A = softmax of each row, over its x only       a row adds up to 1; a . is 0
//     Y = A V                                        each query's mean of the values
//
//     backward    dA = dY V^T     dV = A^T dY
//                 dS = A (dA - row's sum of A dA)    0 where A is 0, so masks need no code here
//                 dQ = dS K / sqrt(head width)       dK = dS^T Q / sqrt(head width)
//
// In all of these masks the keys that a query sees are the first ones: their number is the mask.
//
// Q, K and V are [sentences * tokens, width], and a head is a band of their columns. Nothing has to
// be moved: cuBLAS is told how far it is from a row to the next, and from a sentence to the next.
#include "20_transformer/attention.hpp"

#include <limits>
#include <stdexcept>

#include "20_transformer/layers/batched_matrices.hpp"
#include "20_transformer/layers/exponential.cuh"
#include "20_transformer/layers/long_rows.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// ---- Softmax of what the mask lets through, and back

// Replaces each row of scores by its softmax over the keys that its query sees. One thread takes a
// whole row. (Where rows are long, a GPU gives each to a block: layers/long_rows.hpp.)
__global__ void masked_softmax(AttentionSizes s, const int* key_lengths, bool is_causal,
                               float* scores) {
    for (std::size_t row : grid_range(s.rows())) {
        float* weights = scores + row * s.keys;
        // The mask: how many of the first keys does this query see?
        const int query = static_cast<int>(row % s.queries);
        int seen = key_lengths[row / s.queries / s.heads];
        if (is_causal && seen > query + 1)
            seen = query + 1;
        // Softmax of these. The largest score is subtracted, so that no exp overflows.
        float largest = -std::numeric_limits<float>::infinity(), sum = 0.0f;
#pragma omp simd reduction(max : largest)
        for (int k = 0; k < seen; k++)
            largest = weights[k] > largest ? weights[k] : largest;
#pragma omp simd reduction(+ : sum)
        for (int k = 0; k < seen; k++) {
            weights[k] = exponential(weights[k] - largest);
            sum += weights[k];
        }
        const float inverse = 1.0f / sum;
        for (int k = 0; k < seen; k++)
            weights[k] *= inverse;
        // Nothing of the others.
        for (int k = seen; k < s.keys; k++)
            weights[k] = 0.0f;
    }
}

// Computes dS = A (dA - sum of A dA), row by row.
__global__ void softmax_backward(AttentionSizes s, const float* weights, const float* dweights,
                                 float* dscores) {
    for (std::size_t row : grid_range(s.rows())) {
        const std::size_t first = row * s.keys;
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (int k = 0; k < s.keys; k++)
            sum += weights[first + k] * dweights[first + k];
        for (int k = 0; k < s.keys; k++)
            dscores[first + k] = weights[first + k] * (dweights[first + k] - sum);
    }
}

}  // namespace

// ---- Forward and backward of the weights

Variable attention_weights(Variable queries, Variable keys, const AttentionMask& mask, int heads,
                           const std::string& label) {
    const Tensor q = queries.value(), k = keys.value();
    const AttentionSizes s = attention_sizes(q, k, mask.key_lengths.dim(0), heads);
    Device& device = q.device();
    // S = Q K^T / sqrt(head width), one call for each head, with all sentences.
    const Tensor weights(device, {s.sentences, heads, s.queries, s.keys});
    for (int h = 0; h < heads; h++)
        multiply_batch(device, s.sentences, s.scale(), s.head(q, h, s.queries),
                       transposed(s.head(k, h, s.keys)), s.scores(weights, h));
    // A = softmax(S), in the same memory.
    if (!softmax_of_long_rows(weights, mask))
        launch(device.stream(), grid_for(s.rows()), masked_softmax, s, mask.key_lengths.data(),
               mask.is_causal, weights.data());
    return queries.tape->record(
        label, weights, {queries, keys}, [=](const Tensor& dweights, Tape::InputGradients& inputs) {
            Device& device = dweights.device();
            const Tensor dscores(device, weights.shape());
            if (!softmax_backward_of_long_rows(weights, dweights, dscores))
                launch(device.stream(), grid_for(s.rows()), softmax_backward, s, weights.data(),
                       dweights.data(), dscores.data());
            if (inputs.is_wanted(0)) {  // dQ = dS K
                const GradientTarget dq = inputs.target(0);
                for (int h = 0; h < heads; h++)
                    multiply_batch(device, s.sentences, s.scale(), s.scores(dscores, h),
                                   s.head(k, h, s.keys), s.head(dq.tensor, h, s.queries),
                                   dq.accumulate);
            }
            if (inputs.is_wanted(1)) {  // dK = dS^T Q
                const GradientTarget dk = inputs.target(1);
                for (int h = 0; h < heads; h++)
                    multiply_batch(device, s.sentences, s.scale(), transposed(s.scores(dscores, h)),
                                   s.head(q, h, s.queries), s.head(dk.tensor, h, s.keys),
                                   dk.accumulate);
            }
        });
}

// ---- Forward and backward of the values

Variable weighted_values(Variable weights, Variable values) {
    const Tensor a = weights.value(), v = values.value();
    const AttentionSizes s{a.dim(0), a.dim(1), a.dim(2), a.dim(3), v.dim(1)};
    Device& device = v.device();
    // Y = A V. Each head writes its own band of columns, so the heads' results lie side by side.
    const Tensor y(device, {s.sentences * s.queries, s.width});
    for (int h = 0; h < s.heads; h++)
        multiply_batch(device, s.sentences, 1.0f, s.scores(a, h), s.head(v, h, s.keys),
                       s.head(y, h, s.queries));
    return weights.tape->record(
        "weighted_values", y, {values, weights},
        [=](const Tensor& dy, Tape::InputGradients& inputs) {
            Device& device = dy.device();
            if (inputs.is_wanted(0)) {  // dV = A^T dY
                const GradientTarget dv = inputs.target(0);
                for (int h = 0; h < s.heads; h++)
                    multiply_batch(device, s.sentences, 1.0f, transposed(s.scores(a, h)),
                                   s.head(dy, h, s.queries), s.head(dv.tensor, h, s.keys),
                                   dv.accumulate);
            }
            if (inputs.is_wanted(1)) {  // dA = dY V^T
                const GradientTarget da = inputs.target(1);
                for (int h = 0; h < s.heads; h++)
                    multiply_batch(device, s.sentences, 1.0f, s.head(dy, h, s.queries),
                                   transposed(s.head(v, h, s.keys)), s.scores(da.tensor, h),
                                   da.accumulate);
            }
        });
}

// ---- The layer: three views of the tokens, attention, and a last mixture of the heads

MultiHeadAttention::MultiHeadAttention(Sequential& layers, const std::string& name, Device& device,
                                       int width, int heads, double dropout, Random& random,
                                       const DropoutMasks& masks)
    : query(layers.add<Linear>(name + ".query", device, width, width, random)),
      key(layers.add<Linear>(name + ".key", device, width, width, random)),
      value(layers.add<Linear>(name + ".value", device, width, width, random)),
      out_proj_(layers.add<Linear>(name + ".out_proj", device, width, width, random)),
      dropout_(layers.add<Dropout>(name + ".dropout", dropout, masks)),
      name_(name),
      heads_(heads) {
    if (heads < 1 || width % heads != 0)
        throw std::invalid_argument("a width of " + std::to_string(width) +
                                    " cannot be divided among " + std::to_string(heads) +
                                    " heads: choose a number that divides it");
}

Variable MultiHeadAttention::forward(Variable x, Variable memory, const AttentionMask& mask) {
    return forward(x, key.forward(memory), value.forward(memory), mask);
}

Variable MultiHeadAttention::forward(Variable x, Variable keys, Variable values,
                                     const AttentionMask& mask) {
    const Variable weights =
        attention_weights(query.forward(x), keys, mask, heads_, name_ + ".weights");
    return out_proj_.forward(weighted_values(dropout_.forward(weights), values));
}

}  // namespace ddp
