// The linear layer. A row of x is one sample, a row of W is one output.
//
//     forward    y  = x W^T + b                [batch, inputs]   -> [batch, outputs]
//     backward   db = the sum of dy's rows     [batch, outputs]  -> [outputs]
//                dW = dy^T x                   [outputs, batch]   [batch, inputs]
//                dx = dy W                     [batch, outputs]   [outputs, inputs]
//
// Backward has two products of matrices where forward has one.
#include "03_network/linear.hpp"

#include <stdexcept>

#include "03_network/layers/initialisers.hpp"
#include "03_network/layers/matrix.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {

Linear::Linear(std::string name, Device& device, int inputs, int outputs, Random& random,
               bool has_bias)
    : Module(std::move(name)),
      weight(make_parameter(this->name() + ".weight", device, {outputs, inputs}, inputs, random)),
      bias(has_bias ? make_parameter(this->name() + ".bias", device, {outputs}, inputs, random)
                    : nullptr) {}

// Same order as in PyTorch: weight, bias.
Parameters Linear::parameters() const {
    return bias ? Parameters{weight, bias} : Parameters{weight};
}

Variable Linear::forward(Variable input) {
    const Tensor x = input.value();
    const Tensor w = weight->value;
    const int outputs = w.dim(0), inputs = w.dim(1);
    if (x.shape().size() != 2 || x.dim(1) != inputs)
        throw std::invalid_argument(name() + " takes [batch, " + std::to_string(inputs) +
                                    "], not " + to_string(x.shape()));
    const int batch = x.dim(0);

    // Forward: y = x W^T + b. Row s of y holds, for sample s, one weighted sum per output.
    Tensor y(x.device(), {batch, outputs});
    multiply_and_add_bias(x.device(), matrix(x), transposed(matrix(w)),
                          bias ? bias->value.data() : nullptr, y.data());

    // The inputs are recorded in PyTorch's order: bias, input, weight. In this order their
    // gradients become final.
    std::vector<Variable> operands{input, input.tape->parameter(weight)};
    if (bias)
        operands.insert(operands.begin(), input.tape->parameter(bias));
    return input.tape->record(
        "linear", y, operands,
        // Backward, once dy [batch, outputs] is known. Each gradient is computed only if it
        // is wanted: the pictures are not learned, so the first layer computes no dx.
        [=, has_bias = bias != nullptr](const Tensor& dy, Tape::InputGradients& gradients) {
            Device& device = dy.device();
            const std::size_t input_at = has_bias ? 1 : 0, weight_at = input_at + 1;
            if (has_bias && gradients.is_wanted(0)) {  // db = the sum of dy's rows
                const GradientTarget db = gradients.target(0);
                sum_rows(device, matrix(dy), db.tensor.data(), db.accumulate);
            }
            if (gradients.is_wanted(weight_at)) {  // dW = dy^T x
                const GradientTarget dw = gradients.target(weight_at);
                multiply_matrices(device, transposed(matrix(dy)), matrix(x), dw.tensor.data(),
                                  dw.accumulate);
            }
            if (gradients.is_wanted(input_at)) {  // dx = dy W
                const GradientTarget dx = gradients.target(input_at);
                multiply_matrices(device, matrix(dy), matrix(w), dx.tensor.data(), dx.accumulate);
            }
        });
}

}  // namespace ddp
