// The loss of a batch of tokens. Three rows, four tokens in the vocabulary, smoothing 0.1:
//
//     target   wanted probabilities            loss of the row
//       2      0.025  0.025  0.925  0.025      -(0.025 log p0 + 0.025 log p1 + 0.925 log p2 + ...)
//       1      0.025  0.925  0.025  0.025      the same with p1 in front
//     padding  -                               0, and so is its gradient
//
//     gradient = (p - wanted) / divisor        p = softmax(logits)
//
// The logits are the largest matrix of the model, [tokens, vocabulary]. Forward reads it once and
// keeps two numbers per row: the largest logit, and the sum of exp(logit - largest). Backward reads
// it once more and writes the gradient.
#include "20_transformer/token_loss.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "02_kernels/support/block_sum.cuh"
#include "20_transformer/layers/exponential.cuh"
#include "20_transformer/words/tokenizer.hpp"
#include "common/gpu/gpu.hpp"
#include "common/gpu/rows.hpp"

namespace ddp {
namespace {

// The sizes of a batch, and the two numbers of its loss, as kernels get them.
struct TokenLossSizes {
    int rows, vocabulary;
    float smoothing, divisor;
};

// Computes the loss of each row. A block takes whole rows.
__global__ void token_losses(TokenLossSizes s, const float* logits, const int* target,
                             float* losses, float* largest_logits, float* sums) {
    const GridRange mine = column_range(s.vocabulary);
    const std::size_t first = mine.first, last = mine.last, step = mine.step;
    for (std::size_t row : row_range(s.rows)) {
        const float* from = logits + row * s.vocabulary;
        // log p = logit - largest - log(sum), and no exp is above 1.
        float largest = from[0], total = 0.0f;
#pragma omp simd reduction(max : largest) reduction(+ : total)
        for (std::size_t c = first; c < last; c += step) {
            largest = from[c] > largest ? from[c] : largest;
            total += from[c];
        }
        largest = combine_over_block<ReduceOp::maximum>(largest);
        total = sum_over_block(total);
        const float sum = sum_by_block<float>(
            s.vocabulary, [=](std::size_t c) { return exponential(from[c] - largest); });
        if (threadIdx.x != 0)
            continue;  // the rest is one number per row
        largest_logits[row] = largest;
        sums[row] = sum;
        // Padding costs nothing. A token that does not exist is shown by a NaN.
        const int token = target[row];
        const bool exists = token >= 0 && token < s.vocabulary;
        const float log_sum = logf(sum) + largest;
        const float right = exists ? from[token] : std::numeric_limits<float>::quiet_NaN();
        const float loss = (1.0f - s.smoothing) * (log_sum - right) +
                           s.smoothing * (log_sum - total / s.vocabulary);
        losses[row] = token == pad_token ? 0.0f : loss;
    }
}

// Adds up the rows' losses, in one block.
__global__ void add_up_losses(TokenLossSizes s, const float* losses, float* loss) {
    const float sum = sum_by_block<float>(s.rows, [=](std::size_t row) { return losses[row]; });
    if (threadIdx.x == 0)
        *loss = sum / s.divisor;
}

// Writes or adds the gradient of the logits. `upstream` is the gradient of the loss, usually 1.
__global__ void token_loss_backward(TokenLossSizes s, const float* logits, const int* target,
                                    const float* largest_logits, const float* sums,
                                    const float* upstream, float* gradient, bool accumulate) {
    const float factor = *upstream / s.divisor;
    // The wanted probabilities, of the target and of every other token.
    const float spread = s.smoothing / s.vocabulary, right = 1.0f - s.smoothing + spread;
    for (std::size_t row : row_range(s.rows)) {
        const float* from = logits + row * s.vocabulary;
        float* to = gradient + row * s.vocabulary;
        const int token = target[row];
        const float row_factor = token == pad_token ? 0.0f : factor;  // padding learns nothing
        const float largest = largest_logits[row], inverse = 1.0f / sums[row];
        for (std::size_t c : column_range(s.vocabulary)) {
            // The softmax again, from the two numbers that forward has kept.
            const float wanted = static_cast<int>(c) == token ? right : spread;
            const float value = row_factor * (exponential(from[c] - largest) * inverse - wanted);
            to[c] = accumulate ? to[c] + value : value;
        }
    }
}

}  // namespace

Variable token_loss(Variable logits, const Labels& target, double smoothing, double divisor) {
    const Tensor x = logits.value();
    if (x.shape().size() != 2 || target.size() != static_cast<std::size_t>(x.dim(0)))
        throw std::invalid_argument(
            "token_loss takes logits [rows, vocabulary] and a target for "
            "each row, not " +
            to_string(x.shape()) + " and " + to_string(target.shape()));
    if (!(smoothing >= 0 && smoothing < 1))
        throw std::invalid_argument("the label smoothing is " + std::to_string(smoothing) +
                                    "; it must be at least 0 and below 1, such as 0.1");
    if (!(divisor > 0))
        throw std::invalid_argument("a loss is divided by a number of tokens, which is positive; " +
                                    std::to_string(divisor) + " is not");
    Device& device = x.device();
    const TokenLossSizes sizes{x.dim(0), x.dim(1), static_cast<float>(smoothing),
                               static_cast<float>(divisor)};  // as kernels take them
    const Tensor losses(device, {sizes.rows}), largest(device, {sizes.rows}),
        sums(device, {sizes.rows}), loss(device, {1});
    launch(device.stream(), rows_for(sizes.rows, sizes.vocabulary), token_losses, sizes, x.data(),
           target.data(), losses.data(), largest.data(), sums.data());
    launch(device.stream(), rows_for(1, losses.size()), add_up_losses, sizes, losses.data(),
           loss.data());
    return logits.tape->record(
        "token_loss", loss, {logits}, [=](const Tensor& upstream, Tape::InputGradients& inputs) {
            if (!inputs.is_wanted(0))
                return;
            const GradientTarget dx = inputs.target(0);
            launch(upstream.device().stream(), rows_for(sizes.rows, sizes.vocabulary),
                   token_loss_backward, sizes, x.data(), target.data(), largest.data(), sums.data(),
                   upstream.data(), dx.tensor.data(), dx.accumulate);
        });
}

}  // namespace ddp
