#include "03_network/layers/linear_relu.hpp"

#include <stdexcept>

#include "03_network/layers/matrix.hpp"
#include "03_network/layers/without_parameters.hpp"

namespace ddp {

LinearRelu::LinearRelu(const Linear& linear)
    : Module(linear.name()), weight_(linear.weight), bias_(linear.bias) {}

Variable LinearRelu::forward(Variable input) {
    const Tensor x = input.value(), w = weight_->value;
    if (x.shape().size() != 2 || x.dim(1) != w.dim(1))
        throw std::invalid_argument(name() + " takes [batch, " + std::to_string(w.dim(1)) +
                                    "], not " + to_string(x.shape()));
    Tensor y(x.device(), {x.dim(0), w.dim(0)});
    multiply_and_add_bias(x.device(), matrix(x), transposed(matrix(w)), bias_->value.data(),
                          y.data(), Activation::relu);
    // Recorded and computed in Linear's order: bias, input, weight.
    Tape& tape = *input.tape;
    return tape.record("linear_relu", y, {tape.parameter(bias_), input, tape.parameter(weight_)},
                       [=](const Tensor& dy, Tape::InputGradients& gradients) {
                           Device& device = dy.device();
                           const Tensor dsum(device, dy.shape());  // of what max was taken of
                           if (gradients.is_wanted(0)) {
                               const GradientTarget db = gradients.target(0);
                               relu_backward_and_sum_rows(device, matrix(y), dy.data(), dsum.data(),
                                                          db.tensor.data(), db.accumulate);
                           } else {
                               const Tensor unused(device, {y.dim(1)});
                               relu_backward_and_sum_rows(device, matrix(y), dy.data(), dsum.data(),
                                                          unused.data(), false);
                           }
                           if (gradients.is_wanted(2)) {  // dW = dsum^T x
                               const GradientTarget dw = gradients.target(2);
                               multiply_matrices(device, transposed(matrix(dsum)), matrix(x),
                                                 dw.tensor.data(), dw.accumulate);
                           }
                           if (gradients.is_wanted(1)) {  // dx = dsum W
                               const GradientTarget dx = gradients.target(1);
                               multiply_matrices(device, matrix(dsum), matrix(w), dx.tensor.data(),
                                                 dx.accumulate);
                           }
                       });
}

void fuse_linear_relu(Sequential& model) {
    model.join_layers([](const Module& first, const Module& second) -> std::unique_ptr<Module> {
        const auto* linear = dynamic_cast<const Linear*>(&first);
        if (linear == nullptr || linear->bias == nullptr ||
            dynamic_cast<const Relu*>(&second) == nullptr)
            return nullptr;
        return std::make_unique<LinearRelu>(*linear);
    });
}

}  // namespace ddp
