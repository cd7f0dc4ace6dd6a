// Each operation, and what its backward adds to the gradients of its inputs (g is the gradient of
// its output):
//
//     c = a * b     a: g b      b: g a      multiply_backward with factor 1
//     c = a²        a: 2 g a                the same, with factor 2
//     c = a + b     a: g        b: g        add_backward with sign 1
//     c = a - b     a: g        b: -g       the same, with sign -1 for b
//
// All follow one pattern: launch forward, then record the result together with a function that
// launches backward. That function runs later, so it keeps copies of the values that it needs. (A
// copied Tensor is a handle and shares the memory.)
#include <stdexcept>

#include "01_sgd/operations.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// product = a * b. Each thread computes the elements that grid_range gives it.
__global__ void multiply_forward(std::size_t n, const float* a, const float* b, float* product) {
    for (std::size_t i : grid_range(n))
        product[i] = a[i] * b[i];
}

// gradient (+)= factor * upstream * other, because the derivative of a product with respect to one
// factor is the other factor. (+)= adds if `accumulate` is true and overwrites otherwise.
__global__ void multiply_backward(std::size_t n, float factor, const float* upstream,
                                  const float* other, float* gradient, bool accumulate) {
    for (std::size_t i : grid_range(n)) {
        const float contribution = factor * upstream[i] * other[i];
        gradient[i] = accumulate ? gradient[i] + contribution : contribution;
    }
}

// sum = a + sign * b
__global__ void add_forward(std::size_t n, float sign, const float* a, const float* b, float* sum) {
    for (std::size_t i : grid_range(n))
        sum[i] = a[i] + sign * b[i];
}

// gradient (+)= sign * upstream
__global__ void add_backward(std::size_t n, float sign, const float* upstream, float* gradient,
                             bool accumulate) {
    for (std::size_t i : grid_range(n))
        gradient[i] = accumulate ? gradient[i] + sign * upstream[i] : sign * upstream[i];
}

// Throws std::invalid_argument if the shapes differ. `operation` is the name in the message.
void require_same_shape(const char* operation, const Variable& a, const Variable& b) {
    if (a.value().shape() != b.value().shape())
        throw std::invalid_argument(
            std::string(operation) + " needs two tensors of one shape, not " +
            to_string(a.value().shape()) + " and " + to_string(b.value().shape()));
}

// Launches multiply_backward for one input, if its gradient is wanted.
void contribute(Tape::InputGradients& inputs, std::size_t input, float factor,
                const Tensor& upstream, const Tensor& other) {
    if (!inputs.is_wanted(input))
        return;
    const GradientTarget target = inputs.target(input);
    launch(upstream.device().stream(), grid_for(upstream.size()), multiply_backward,
           upstream.size(), factor, upstream.data(), other.data(), target.tensor.data(),
           target.accumulate);
}

// Launches add_backward for one input, if its gradient is wanted.
void contribute(Tape::InputGradients& inputs, std::size_t input, float sign,
                const Tensor& upstream) {
    if (!inputs.is_wanted(input))
        return;
    const GradientTarget target = inputs.target(input);
    launch(upstream.device().stream(), grid_for(upstream.size()), add_backward, upstream.size(),
           sign, upstream.data(), target.tensor.data(), target.accumulate);
}

// Records a + sign * b.
Variable add_signed(const char* operation, Variable a, Variable b, float sign) {
    require_same_shape(operation, a, b);
    Device& device = a.tape->device();
    Tensor sum(device, a.value().shape());
    launch(device.stream(), grid_for(sum.size()), add_forward, sum.size(), sign, a.value().data(),
           b.value().data(), sum.data());
    return a.tape->record(operation, sum, {a, b},
                          [sign](const Tensor& upstream, Tape::InputGradients& inputs) {
                              contribute(inputs, 0, 1.0f, upstream);
                              contribute(inputs, 1, sign, upstream);
                          });
}

}  // namespace

Variable multiply(Variable a, Variable b) {
    require_same_shape("multiply", a, b);
    Device& device = a.tape->device();
    Tensor product(device, a.value().shape());
    launch(device.stream(), grid_for(product.size()), multiply_forward, product.size(),
           a.value().data(), b.value().data(), product.data());
    return a.tape->record(
        "multiply", product, {a, b},
        // Kept for backward: both inputs, because each factor's derivative is the other.
        [a = a.value(), b = b.value()](const Tensor& upstream, Tape::InputGradients& inputs) {
            contribute(inputs, 0, 1.0f, upstream, b);
            contribute(inputs, 1, 1.0f, upstream, a);
        });
}

// Neither addition nor subtraction needs the inputs' values in backward: nothing is kept.
Variable add(Variable a, Variable b) {
    return add_signed("add", a, b, 1.0f);
}

Variable subtract(Variable a, Variable b) {
    return add_signed("subtract", a, b, -1.0f);
}

// The square is a * a, so its derivative has both factors: 2 a.
Variable square(Variable a) {
    Device& device = a.tape->device();
    Tensor result(device, a.value().shape());
    launch(device.stream(), grid_for(result.size()), multiply_forward, result.size(),
           a.value().data(), a.value().data(), result.data());
    return a.tape->record("square", result, {a},
                          [a = a.value()](const Tensor& upstream, Tape::InputGradients& inputs) {
                              contribute(inputs, 0, 2.0f, upstream, a);
                          });
}

}  // namespace ddp
