// A linear layer in mixed precision. Each arrow is a rounding to T; products of two Ts are exact in
// float32, and sums are float32.
//
//     forward    x -> x16,  W -> W16,  b -> b16     y  = x16 W16^T + b16 -> T
//     backward   dy -> dy16                         dW = dy16^T x16      -> T, added to float32
//                                                   dx = dy16 W16        -> T
//                                                   db = sum of dy16     -> T, added to float32
//
// A gradient below 2^-25 becomes 0 in __half, and one above 65504 infinite: see grad_scaler.hpp.
#include "16_recipe/mixed_precision.hpp"

#include <stdexcept>

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// ---- Kernels

// Rounds to T.
template <class T>
__global__ void round_to(std::size_t n, const float* from, T* to) {
    for (std::size_t i : grid_range(n))
        to[i] = static_cast<T>(from[i]);
}

// Rounds sums to T, and writes them or adds them.
template <class T>
__global__ void write_rounded(std::size_t n, const float* sums, float* to, bool accumulate) {
    for (std::size_t i : grid_range(n)) {
        const auto rounded = static_cast<float>(static_cast<T>(sums[i]));
        to[i] = accumulate ? to[i] + rounded : rounded;
    }
}

// Adds the bias to every row of the sums, and rounds once.
template <class T>
__global__ void add_bias_and_round(std::size_t n, int columns, const T* bias, float* y) {
    for (std::size_t i : grid_range(n))
        y[i] = static_cast<float>(static_cast<T>(y[i] + static_cast<float>(bias[i % columns])));
}

// Adds up the rows of dy [batch, outputs], and rounds once.
template <class T>
__global__ void sum_rows_and_round(int batch, int outputs, const T* dy, float* db,
                                   bool accumulate) {
    for (std::size_t output : grid_range(outputs)) {
        float sum = 0.0f;
        for (int sample = 0; sample < batch; sample++)
            sum += static_cast<float>(dy[static_cast<std::size_t>(sample) * outputs + output]);
        const auto rounded = static_cast<float>(static_cast<T>(sum));
        db[output] = accumulate ? db[output] + rounded : rounded;
    }
}

// ---- Products

// Returns a copy of `from`, rounded to T.
template <class T>
BasicTensor<T> rounded(const Tensor& from) {
    BasicTensor<T> to(from.device(), from.shape());
    launch(from.device().stream(), grid_for(from.size()), round_to<T>, from.size(), from.data(),
           to.data());
    return to;
}

template <class T>
constexpr cudaDataType data_type = std::is_same_v<T, __half> ? CUDA_R_16F : CUDA_R_16BF;

// Enqueues product [m, n] = op(a) op(b) in float32, where op transposes if asked to. All matrices
// are row-major; cuBLAS, which is column-major, is asked for the transposed product.
template <class T>
void multiply_short(const BasicTensor<T>& a, bool transposes_a, const BasicTensor<T>& b,
                    bool transposes_b, const Tensor& product) {
    const float one = 1.0f, zero = 0.0f;
    const int m = product.dim(0), n = product.dim(1), k = a.dim(transposes_a ? 0 : 1);
    DDP_CHECK(cublasGemmEx(a.device().blas(), transposes_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                           transposes_a ? CUBLAS_OP_T : CUBLAS_OP_N, n, m, k, &one, b.data(),
                           data_type<T>, b.dim(1), a.data(), data_type<T>, a.dim(1), &zero,
                           product.data(), CUDA_R_32F, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

// Writes or adds op(a) op(b), rounded to T.
template <class T>
void multiply_into(const GradientTarget& target, const BasicTensor<T>& a, bool transposes_a,
                   const BasicTensor<T>& b, bool transposes_b) {
    const Tensor sums(target.tensor.device(), target.tensor.shape());
    multiply_short(a, transposes_a, b, transposes_b, sums);
    launch(sums.device().stream(), grid_for(sums.size()), write_rounded<T>, sums.size(),
           sums.data(), target.tensor.data(), target.accumulate);
}

}  // namespace

// ---- The layer

template <class T>
MixedLinear<T>::MixedLinear(std::unique_ptr<Linear> linear)
    : Module(linear->name()), linear_(std::move(linear)) {}

template <class T>
Variable MixedLinear<T>::forward(Variable input) {
    const Tensor& x = input.value();
    const Tensor& weight = linear_->weight->value;
    const bool has_bias = linear_->bias != nullptr;
    if (x.shape().size() != 2 || x.dim(1) != weight.dim(1))
        throw std::invalid_argument(name() + " takes [batch, " + std::to_string(weight.dim(1)) +
                                    "], not " + to_string(x.shape()));
    // Forward. Backward needs the rounded x and W again.
    const BasicTensor<T> x16 = rounded<T>(x), w16 = rounded<T>(weight);
    const Tensor y(x.device(), {x.dim(0), weight.dim(0)});
    multiply_short(x16, false, w16, true, y);
    if (has_bias)
        launch(x.device().stream(), grid_for(y.size()), add_bias_and_round<T>, y.size(), y.dim(1),
               rounded<T>(linear_->bias->value).data(), y.data());
    else
        launch(x.device().stream(), grid_for(y.size()), write_rounded<T>, y.size(), y.data(),
               y.data(), false);

    // Inputs come in Linear's order: bias, input, weight.
    std::vector<Variable> from{input, input.tape->parameter(linear_->weight)};
    if (has_bias)
        from.insert(from.begin(), input.tape->parameter(linear_->bias));
    return input.tape->record(
        "mixed linear", y, from, [=](const Tensor& dy, Tape::InputGradients& gradients) {
            const std::size_t input_at = has_bias ? 1 : 0, weight_at = input_at + 1;
            // dy comes in float32, from a loss that may be scaled; here it is rounded.
            const BasicTensor<T> dy16 = rounded<T>(dy);
            if (has_bias && gradients.is_wanted(0)) {
                const GradientTarget db = gradients.target(0);
                launch(dy.device().stream(), grid_for(dy.dim(1)), sum_rows_and_round<T>, dy.dim(0),
                       dy.dim(1), dy16.data(), db.tensor.data(), db.accumulate);
            }
            if (gradients.is_wanted(weight_at))  // dW = dy^T x
                multiply_into(gradients.target(weight_at), dy16, true, x16, false);
            if (gradients.is_wanted(input_at))  // dx = dy W
                multiply_into(gradients.target(input_at), dy16, false, w16, false);
        });
}

// Every Linear gives its parameters to a MixedLinear, which takes its place.
template <class T>
void use_mixed_precision(Sequential& model) {
    model.replace_layers([](std::unique_ptr<Module> layer) -> std::unique_ptr<Module> {
        auto* linear = dynamic_cast<Linear*>(layer.get());
        if (linear == nullptr)
            return layer;
        layer.release();
        return std::make_unique<MixedLinear<T>>(std::unique_ptr<Linear>(linear));
    });
}

template class MixedLinear<__half>;
template class MixedLinear<__nv_bfloat16>;
template void use_mixed_precision<__half>(Sequential&);
template void use_mixed_precision<__nv_bfloat16>(Sequential&);

}  // namespace ddp
