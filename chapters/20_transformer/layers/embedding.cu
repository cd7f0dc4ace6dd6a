// The embedding: a row of the table for each token, and a row for its place.
//
//     tokens                table (weight)            y
//     [ 5  2  0 ]           0  . . . .                sqrt(width) * row 5 + position 0
//     [ 7  5  2 ]           1  . . . .                sqrt(width) * row 2 + position 1
//                           2  . . . .                sqrt(width) * row 0 + position 2
//                           ...                       sqrt(width) * row 7 + position 0
//
//     backward              row 5 of dweight = sqrt(width) * (dy[0] + dy[4]), wherever a 5 stands
//
// Most tokens of the vocabulary are not in the batch, and their rows of the gradient are 0. The
// gradient is as large as the table all the same, and travels as a whole.
#include "20_transformer/layers/embedding.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "03_network/layers/matrix.hpp"
#include "common/gpu/gpu.hpp"
#include "common/gpu/rows.hpp"

namespace ddp {
namespace {

// The places of a batch's tokens, and the table's size.
struct EmbeddingSizes {
    int rows, length, first;  // row r stands at position first + r % length
    int vocabulary, width;
    float scale;  // sqrt(width): the table's numbers are then about as large as the positions'
};

// Computes y [rows, width]. A block takes whole rows.
__global__ void embed(EmbeddingSizes s, const int* tokens, const float* weight,
                      const float* positions, float* y) {
    for (std::size_t row : row_range(s.rows)) {
        const int token = tokens[row];
        const bool exists = token >= 0 && token < s.vocabulary;
        const float scale = exists ? s.scale : std::numeric_limits<float>::quiet_NaN();
        const float* from = weight + static_cast<std::size_t>(exists ? token : 0) * s.width;
        const float* position = positions + (s.first + row % s.length) * s.width;
        for (std::size_t column : column_range(s.width))
            y[row * s.width + column] = scale * from[column] + position[column];
    }
}

// Adds each row of dy to its token's row of dweight. A token may stand in many rows, so the
// table's rows are dealt out, not those of dy: a block owns every gridDim.x-th token, and adds the
// rows in their order. No two threads write to the same place, and the sum has the same bits in
// every run.
__global__ void add_to_tokens(EmbeddingSizes s, const int* tokens, const float* dy,
                              float* dweight) {
    for (int row = 0; row < s.rows; row++) {
        const int token = tokens[row];
        if (token < 0 || token >= s.vocabulary || token % gridDim.x != blockIdx.x)
            continue;
        const float* from = dy + static_cast<std::size_t>(row) * s.width;
        float* to = dweight + static_cast<std::size_t>(token) * s.width;
        for (std::size_t column : column_range(s.width))
            to[column] += s.scale * from[column];
    }
}

}  // namespace

Embedding::Embedding(std::string name, std::shared_ptr<Parameter> weight, Tensor positions)
    : Module(std::move(name)), weight(std::move(weight)), positions_(std::move(positions)) {}

Variable Embedding::forward(Tape& tape, const Tokens& tokens, int first) {
    const Tensor w = weight->value;
    const int sentences = tokens.dim(0), length = tokens.dim(1), width = w.dim(1);
    if (first + length > positions_.dim(0))
        throw std::invalid_argument(
            name() + " knows " + std::to_string(positions_.dim(0)) +
            " positions, and a sentence here has " + std::to_string(first + length) +
            " tokens: leave longer sentences out, or make the model for longer ones");
    const EmbeddingSizes sizes{
        sentences * length, length, first,
        w.dim(0),           width,  static_cast<float>(std::sqrt(static_cast<double>(width)))};
    const Tensor y(tokens.device(), {sizes.rows, width});
    launch(tokens.device().stream(), rows_for(sizes.rows, width), embed, sizes, tokens.data(),
           w.data(), positions_.data(), y.data());
    return tape.record("embedding", y, {tape.parameter(weight)},
                       [sizes, tokens](const Tensor& dy, Tape::InputGradients& inputs) {
                           if (!inputs.is_wanted(0))
                               return;
                           GradientTarget dw = inputs.target(0);
                           // The first to write begins with zeros, for the tokens that the batch
                           // has not.
                           if (!dw.accumulate)
                               fill(dw.tensor, 0.0f);
                           launch(dy.device().stream(), rows_for(sizes.vocabulary, sizes.width),
                                  add_to_tokens, sizes, tokens.data(), dy.data(), dw.tensor.data());
                       });
}

// Does what a linear layer without bias does, with the weight that it was given. In backward it
// comes first: its gradient of the weight is full, and the embeddings that share the weight add
// their rows to it.
Variable TokenScores::forward(Variable x) {
    const Tensor rows = x.value(), w = weight->value;
    const Tensor y(rows.device(), {rows.dim(0), w.dim(0)});
    multiply_matrices(rows.device(), matrix(rows), transposed(matrix(w)), y.data());
    return x.tape->record("token_scores", y, {x, x.tape->parameter(weight)},
                          [rows, w](const Tensor& dy, Tape::InputGradients& inputs) {
                              if (inputs.is_wanted(1)) {  // dW = dy^T x
                                  const GradientTarget dw = inputs.target(1);
                                  multiply_matrices(dy.device(), transposed(matrix(dy)),
                                                    matrix(rows), dw.tensor.data(), dw.accumulate);
                              }
                              if (inputs.is_wanted(0)) {  // dx = dy W
                                  const GradientTarget dx = inputs.target(0);
                                  multiply_matrices(dy.device(), matrix(dy), matrix(w),
                                                    dx.tensor.data(), dx.accumulate);
                              }
                          });
}

Tensor sinusoidal_positions(Device& device, int longest, int width) {
    if (width % 2 != 0)
        throw std::invalid_argument("positions are pairs of sine and cosine: a width of " +
                                    std::to_string(width) + " is not even");
    std::vector<float> table;
    for (int position = 0; position < longest; position++)
        for (int column = 0; column < width; column++) {
            const double turns = std::pow(10'000.0, -(column / 2 * 2.0) / width);
            const double angle = position * turns;
            table.push_back(
                static_cast<float>(column % 2 == 0 ? std::sin(angle) : std::cos(angle)));
        }
    return Tensor(device, {longest, width}, table);
}

}  // namespace ddp
