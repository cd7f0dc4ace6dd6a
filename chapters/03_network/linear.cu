#include "03_network/linear.hpp"

#include <algorithm>
#include <stdexcept>

#include "03_network/layers/initialisers.hpp"
#include "03_network/layers/matrix.hpp"
#include "common/gpu/gpu.hpp"
#include "common/gpu/rows.hpp"

namespace ddp {
namespace {

constexpr int tile_width = 32;  // outputs and samples of a piece that the nearest cache holds

// y [batch, outputs] = transposed_y^T + bias, tile by tile: read straight through, one of the two
// matrices would be read or written in steps of a whole row.
__global__ void transpose_and_add_bias(int batch, int outputs, const float* transposed_y,
                                       const float* bias, float* y) {
    const int strips = (outputs + tile_width - 1) / tile_width;
    const int groups = (batch + tile_width - 1) / tile_width;
    for (std::size_t tile : row_range(static_cast<std::size_t>(strips) * groups)) {
        const int first_output = static_cast<int>(tile) / groups * tile_width;
        const int first_sample = static_cast<int>(tile) % groups * tile_width;
        const int width = std::min(int{tile_width}, outputs - first_output);
        const int last_sample = std::min(first_sample + tile_width, batch);
        for (int sample = first_sample; sample < last_sample; sample++)
            for (std::size_t i : column_range(width)) {
                const std::size_t output = first_output + i;
                const float sum = transposed_y[output * batch + sample];
                y[static_cast<std::size_t>(sample) * outputs + output] =
                    bias == nullptr ? sum : sum + bias[output];
            }
    }
}

// db[o] (+)= the sum of dy[., o] over the batch. Row after row, each thread with its own outputs.
__global__ void sum_over_batch(int batch, int outputs, const float* dy, float* db,
                               bool accumulate) {
    const GridRange mine = grid_range(outputs);
    if (!accumulate)
        for (std::size_t output : mine)
            db[output] = 0.0f;
    for (int sample = 0; sample < batch; sample++)
        for (std::size_t output : mine)
            db[output] += dy[static_cast<std::size_t>(sample) * outputs + output];
}

}  // namespace

Linear::Linear(std::string name, Device& device, int inputs, int outputs, Random& random,
               bool has_bias)
    : Module(std::move(name)),
      weight(make_parameter(this->name() + ".weight", device, {outputs, inputs}, inputs, random)),
      bias(has_bias ? make_parameter(this->name() + ".bias", device, {outputs}, inputs, random)
                    : nullptr) {}

Parameters Linear::parameters() const {
    return bias ? Parameters{weight, bias} : Parameters{weight};
}

Variable Linear::forward(Variable input) {
    const Tensor x = input.value();
    const Tensor w = weight->value;
    const int outputs = w.dim(0);
    const int inputs = w.dim(1);
    if (x.shape().size() != 2 || x.dim(1) != inputs)
        throw std::invalid_argument(name() + " takes [batch, " + std::to_string(inputs) +
                                    "], not " + text_of(x.shape()));
    const int batch = x.dim(0);
    Device& device = x.device();
    // y^T = W x^T rather than y = x W^T: OpenBLAS is up to a third faster when the large matrix is
    // the one that it need not transpose, and y is small and must be read again for the bias
    // anyway.
    Tensor transposed_y(device, {outputs, batch});
    multiply_matrices(device, {w.data(), outputs, inputs}, transposed({x.data(), batch, inputs}),
                      transposed_y.data());
    Tensor y(device, {batch, outputs});
    const auto tiles = static_cast<std::size_t>((outputs + tile_width - 1) / tile_width) *
                       static_cast<std::size_t>((batch + tile_width - 1) / tile_width);
    launch(device.stream(), rows_for(tiles, tile_width), transpose_and_add_bias, batch, outputs,
           transposed_y.data(), bias ? bias->value.data() : nullptr, y.data());

    // In PyTorch's order, in which gradients then become final: bias, input, weight.
    std::vector<Variable> from{input, input.tape->parameter(weight)};
    if (bias)
        from.insert(from.begin(), input.tape->parameter(bias));
    return input.tape->record(
        "linear", y, from,
        [=, has_bias = bias != nullptr](const Tensor& dy, Tape::InputGradients& gradients) {
            Device& device = dy.device();
            const std::size_t input_at = has_bias ? 1 : 0, weight_at = input_at + 1;
            if (has_bias && gradients.is_wanted(0)) {
                const GradientTarget db = gradients.target(0);
                launch(device.stream(), grid_for(outputs), sum_over_batch, batch, outputs,
                       dy.data(), db.tensor.data(), db.accumulate);
            }
            const Matrix dy_matrix{dy.data(), batch, outputs};
            if (gradients.is_wanted(weight_at)) {  // dW = dy^T x
                const GradientTarget dw = gradients.target(weight_at);
                multiply_matrices(device, transposed(dy_matrix), {x.data(), batch, inputs},
                                  dw.tensor.data(), dw.accumulate);
            }
            if (gradients.is_wanted(input_at)) {  // dx = dy W
                const GradientTarget dx = gradients.target(input_at);
                multiply_matrices(device, dy_matrix, {w.data(), outputs, inputs}, dx.tensor.data(),
                                  dx.accumulate);
            }
        });
}

}  // namespace ddp
