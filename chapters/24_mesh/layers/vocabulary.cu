// Six tokens, two parts, one row of scores with the target 4:
//
//                          part 0: tokens 0 1 2    part 1: tokens 3 4 5    over all parts
//     largest score        m0                      m1                      m, the maximum
//     exp(score - m)       s0                      s1                      s, the sum
//     target's score       0                       z                       z, the sum
//
//     loss = log s + m - z            gradient of a score = exp(score - m) / s, minus 1 at the
//     target
//
// The gradient needs nothing more from the others.
#include "24_mesh/layers/vocabulary.hpp"

#include "03_network/layers/initialisers.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// One part of a batch's scores, or of the table: tokens first .. first + tokens - 1.
struct PartSizes {
    int rows, first, tokens, width;

    __host__ __device__ bool has(int token) const {
        return token >= first && token < first + tokens;
    }
};

__global__ void embed_part(PartSizes s, const int* tokens, const float* table, float* y) {
    for (std::size_t i : grid_range(static_cast<std::size_t>(s.rows) * s.width)) {
        const int token = tokens[i / s.width];
        const std::size_t column = i % s.width;
        y[i] = s.has(token) ? table[(token - s.first) * s.width + column] : 0.0f;
    }
}

// A thread adds up one number of the table, in the order of the rows.
__global__ void embed_part_backward(PartSizes s, const int* tokens, const float* dy,
                                    bool accumulate, float* dtable) {
    for (std::size_t i : grid_range(static_cast<std::size_t>(s.tokens) * s.width)) {
        const int token = s.first + static_cast<int>(i / s.width);
        float sum = accumulate ? dtable[i] : 0.0f;
        for (int row = 0; row < s.rows; row++)
            if (tokens[row] == token)
                sum += dy[static_cast<std::size_t>(row) * s.width + i % s.width];
        dtable[i] = sum;
    }
}

__global__ void largest_scores(PartSizes s, const float* scores, float* largest) {
    for (std::size_t row : grid_range(static_cast<std::size_t>(s.rows))) {
        float result = scores[row * s.tokens];
        for (int c = 1; c < s.tokens; c++)
            result = fmaxf(result, scores[row * s.tokens + c]);
        largest[row] = result;
    }
}

// Writes the sums of the exponentials, and behind them the targets' scores.
__global__ void sums_and_targets(PartSizes s, const float* scores, const int* target,
                                 const float* largest, float* both) {
    for (std::size_t row : grid_range(static_cast<std::size_t>(s.rows))) {
        float sum = 0.0f;
        for (int c = 0; c < s.tokens; c++)
            sum += expf(scores[row * s.tokens + c] - largest[row]);
        both[row] = sum;
        both[s.rows + row] =
            s.has(target[row]) ? scores[row * s.tokens + target[row] - s.first] : 0.0f;
    }
}

// One thread: the order of the sum is that of the rows.
__global__ void mean_loss(int rows, const float* largest, const float* both, float* loss) {
    for (std::size_t only : grid_range(1)) {
        float sum = 0.0f;
        for (int row = 0; row < rows; row++)
            sum += logf(both[row]) + largest[row] - both[rows + row];
        loss[only] = sum / static_cast<float>(rows);
    }
}

__global__ void scores_backward(PartSizes s, const float* scores, const int* target,
                                const float* largest, const float* both, const float* upstream,
                                bool accumulate, float* dscores) {
    const float factor = *upstream / static_cast<float>(s.rows);
    for (std::size_t i : grid_range(static_cast<std::size_t>(s.rows) * s.tokens)) {
        const std::size_t row = i / s.tokens;
        const bool is_target = target[row] == s.first + static_cast<int>(i % s.tokens);
        const float p = expf(scores[i] - largest[row]) / both[row];
        const float gradient = factor * (p - (is_target ? 1.0f : 0.0f));
        dscores[i] = accumulate ? dscores[i] + gradient : gradient;
    }
}

}  // namespace

VocabularyParallelEmbedding::VocabularyParallelEmbedding(TensorParallel& parallel,
                                                         const std::string& name, Device& device,
                                                         int vocabulary, int width, Random& random)
    : parallel_(parallel), name_(name) {
    const ColumnParallelLinear rows(parallel, name, device, width, vocabulary, random);
    rows.append_to(parts_);
}

Variable VocabularyParallelEmbedding::forward(Tape& tape, const Tokens& tokens) {
    PartVariables parts;
    for (int p = 0; p < parallel_.here(); p++) {
        const auto& table = parts_[static_cast<std::size_t>(p)];
        const int rows_here = table->value.dim(0), width = table->value.dim(1);
        const PartSizes sizes{static_cast<int>(tokens.size()), (parallel_.first() + p) * rows_here,
                              rows_here, width};
        const Tensor y(tokens.device(), {sizes.rows, width});
        launch(y.device().stream(), grid_for(y.size()), embed_part, sizes, tokens.data(),
               table->value.data(), y.data());
        parts.push_back(tape.record(
            "embedding", y, {tape.parameter(table)},
            [sizes, tokens](const Tensor& dy, Tape::InputGradients& inputs) {
                const GradientTarget dtable = inputs.target(0);
                launch(dy.device().stream(), grid_for(dtable.tensor.size()), embed_part_backward,
                       sizes, tokens.data(), dy.data(), dtable.accumulate, dtable.tensor.data());
            }));
    }
    return sum_of_parts(parallel_, parts, name_);
}

void VocabularyParallelEmbedding::append_to(Parameters& parameters) const {
    parameters.insert(parameters.end(), parts_.begin(), parts_.end());
}

Variable vocabulary_parallel_loss(TensorParallel& parallel, const PartVariables& scores,
                                  const Labels& target) {
    const Tensor& any = scores.front().value();
    Device& device = any.device();
    Stream& stream = device.stream();
    const int rows = any.dim(0), tokens = any.dim(1);
    const auto grid = grid_for(static_cast<std::size_t>(rows));
    const auto sizes = [&](std::size_t p) {
        return PartSizes{rows, (parallel.first() + static_cast<int>(p)) * tokens, tokens, 0};
    };
    std::vector<Tensor> largest_of, both_of;
    for (std::size_t p = 0; p < scores.size(); p++) {
        largest_of.emplace_back(device, Shape{rows});
        launch(stream, grid, largest_scores, sizes(p), scores[p].value().data(),
               largest_of[p].data());
    }
    const Tensor largest = parallel.all_reduce(largest_of, ReduceOp::maximum, "largest score");
    for (std::size_t p = 0; p < scores.size(); p++) {
        both_of.emplace_back(device, Shape{2 * rows});
        launch(stream, grid, sums_and_targets, sizes(p), scores[p].value().data(), target.data(),
               largest.data(), both_of[p].data());
    }
    const Tensor both = parallel.all_reduce(both_of, ReduceOp::sum, "loss");
    const Tensor loss(device, {1});
    launch(stream, grid_for(1), mean_loss, rows, largest.data(), both.data(), loss.data());
    std::vector<PartSizes> all_sizes;
    std::vector<Tensor> values;
    for (std::size_t p = 0; p < scores.size(); p++) {
        all_sizes.push_back(sizes(p));
        values.push_back(scores[p].value());
    }
    return scores.front().tape->record(
        "vocabulary_parallel_loss", loss, scores,
        [=](const Tensor& upstream, Tape::InputGradients& inputs) {
            for (std::size_t p = 0; p < values.size(); p++) {
                const GradientTarget dscores = inputs.target(p);
                launch(upstream.device().stream(), grid_for(values[p].size()), scores_backward,
                       all_sizes[p], values[p].data(), target.data(), largest.data(), both.data(),
                       upstream.data(), dscores.accumulate, dscores.tensor.data());
            }
        });
}

}  // namespace ddp
