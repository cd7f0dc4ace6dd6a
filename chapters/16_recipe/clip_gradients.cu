// Clipping in three passes, all on the device: the host never sees the norm.
//
//     gradients    | weight ............... | bias .. |
//     squares      each thread adds up the squares of its share       | 1.2 | 0.7 | ... | 0.1 |
//     norm         block_reduce adds the threads' sums, in a fixed order; square root
//     gradients    *= min(1, max_norm / (norm + 1e-6))
#include "16_recipe/clip_gradients.hpp"

#include <algorithm>
#include <stdexcept>

#include "02_kernels/block_reduce.hpp"
#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// Writes each thread's sum of squares. Sums are doubles: a million squares lose no digits in them.
// (By the pragma a CPU adds several squares at once; on a GPU it means nothing.)
__global__ void add_squares(std::size_t n, const float* values, double* sums) {
    const GridRange mine = grid_range(n);
    const std::size_t first = mine.first, last = mine.last, step = mine.step;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = first; i < last; i += step)
        sum += static_cast<double>(values[i]) * values[i];
    sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Computes the norm and the factor of all gradients, in one thread. A NaN stays a NaN.
__global__ void finish_norm(const double* sum, float max_norm, float* norm, float* factor) {
    *norm = static_cast<float>(sqrt(*sum));
    const float quotient = max_norm / (*norm + 1e-6f);
    *factor = quotient > 1.0f ? 1.0f : quotient;
}

// Multiplies by a number on the device, even by 1: to skip that, the host would have to wait for
// the number.
__global__ void multiply_by(std::size_t n, const float* factor, float* values) {
    for (std::size_t i : grid_range(n))
        values[i] *= *factor;
}

// Returns a shape for add_squares: grid_for's, with fewer blocks, since each thread leaves a sum.
LaunchShape shape_for_squares(std::size_t n) {
    constexpr unsigned int max_blocks = 64;
    LaunchShape shape = grid_for(n);
    shape.grid.x = std::min(shape.grid.x, max_blocks);
    return shape;
}

std::size_t threads_of(const LaunchShape& shape) {
    return std::size_t{shape.grid.x} * shape.block.x;
}

// Returns the sum of the squares of all gradients, one number on the device.
BasicTensor<double> sum_of_squares(Device& device, const std::vector<Tensor>& gradients) {
    std::size_t threads = 0;  // each leaves one sum
    for (const Tensor& gradient : gradients)
        threads += threads_of(shape_for_squares(gradient.size()));
    const BasicTensor<double> sums(device, {static_cast<int>(threads)}), all(device, {1});
    std::size_t next = 0;  // a gradient's threads write after those of the one before
    for (const Tensor& gradient : gradients) {
        const LaunchShape shape = shape_for_squares(gradient.size());
        launch(device.stream(), shape, add_squares, gradient.size(), gradient.data(),
               sums.data() + next);
        next += threads_of(shape);
    }
    const BlockReduce how;
    const BasicTensor<double> scratch(device, {static_cast<int>(scratch_elements(how, threads))});
    block_reduce<ReduceOp::sum>(how, threads, static_cast<const double*>(sums.data()), all.data(),
                                scratch.data(), device.stream());
    return all;
}

}  // namespace

Tensor clip_grad_norm(const Parameters& parameters, double max_norm, const AddRanks& add_ranks) {
    if (!(max_norm > 0))
        throw std::invalid_argument("the largest norm of the gradients is " +
                                    std::to_string(max_norm) +
                                    "; it must be a positive number, such as 1");
    std::vector<Tensor> gradients;  // a parameter that was not used has none
    for (const auto& parameter : parameters)
        if (parameter->has_gradient())
            gradients.push_back(parameter->gradient());
    if (gradients.empty())
        throw std::invalid_argument("there is no gradient to clip: clip after backward");
    Device& device = gradients.front().device();
    // The norm, and from it the factor.
    const BasicTensor<double> sum = sum_of_squares(device, gradients);
    if (add_ranks)
        add_ranks(sum);
    const Tensor norm(device, {1}), factor(device, {1});
    launch(device.stream(), {1, 1}, finish_norm, sum.data(), static_cast<float>(max_norm),
           norm.data(), factor.data());
    for (const Tensor& gradient : gradients)
        launch(device.stream(), grid_for(gradient.size()), multiply_by, gradient.size(),
               factor.data(), gradient.data());
    return norm;
}

}  // namespace ddp
