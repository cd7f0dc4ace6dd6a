#pragma once
// Products of row-major matrices in device memory, by cuBLAS, and the sum of a matrix's rows.
#include "01_sgd/tensor.hpp"

namespace ddp {

// `rows` x `columns` numbers as they lie in memory. A product reads them as they are, or transposed
// if `is_transposed`. A Matrix does not own its memory.
struct Matrix {
    const float* data;
    int rows, columns;
    bool is_transposed = false;
};

// Returns a tensor [rows, columns] as a matrix. `tensor` must outlive it.
inline Matrix matrix(const Tensor& tensor) {
    return {tensor.data(), tensor.dim(0), tensor.dim(1)};
}

// Returns the transposed matrix: the same memory, read column by column. Nothing is copied.
inline Matrix transposed(Matrix matrix) {
    matrix.is_transposed = !matrix.is_transposed;
    return matrix;
}

// Enqueues product = a b, or product += a b if `accumulate`. `product` has as many rows as a and as
// many columns as b, row-major. Throws std::invalid_argument if a has not as many columns as b has
// rows.
void multiply_matrices(Device& device, Matrix a, Matrix b, float* product, bool accumulate = false);

// The function of each sum that follows a product and its bias.
enum class Activation { none, relu };

// Enqueues y = a b + bias, with `bias` added to every row; a null `bias` adds nothing. With relu,
// negative sums become 0. The shapes and errors are those of multiply_matrices; `bias` has as many
// elements as b has columns.
void multiply_and_add_bias(Device& device, Matrix a, Matrix b, const float* bias, float* y,
                           Activation activation = Activation::none);
// Enqueues the second half of it, on a y [rows, columns] that holds a b.
void add_bias(Device& device, int rows, int columns, const float* bias, float* y,
              Activation activation = Activation::none);

// Enqueues sums = the sum of the rows of a matrix that is not transposed, or sums += it if
// `accumulate`. `sums` has as many elements as the matrix has columns. `factors` has a number for
// each of the matrix's, by which that is multiplied first; null: nothing is.
void sum_rows(Device& device, Matrix matrix, float* sums, bool accumulate,
              const float* factors = nullptr);

// Enqueues dx = dy where y > 0, and 0 elsewhere; and, in the same pass, sums = the sum of dx's
// rows, or sums += it if `accumulate`. dy and dx are as large as y, which is not transposed.
void relu_backward_and_sum_rows(Device& device, Matrix y, const float* dy, float* dx, float* sums,
                                bool accumulate);

}  // namespace ddp
