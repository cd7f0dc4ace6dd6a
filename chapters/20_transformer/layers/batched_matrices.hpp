#pragma once
// Many small products of row-major matrices in one call of cuBLAS.
#include "01_sgd/tensor.hpp"

namespace ddp {

// A batch of matrices of `rows` x `columns` numbers, each of which may be a band of a larger one:
//
//     data ->  . . [a b] . .     from a number to the one below it are `leading` numbers
//              . . [c d] . .     (here 6), and from a matrix to the next are `stride`
//
// A product reads them as they are, or transposed. They do not own their memory.
struct BatchedMatrices {
    float* data;
    int rows, columns, leading;
    long long stride;
    bool is_transposed = false;
};

// Returns the transposed matrices: the same memory, read column by column. Nothing is copied.
inline BatchedMatrices transposed(BatchedMatrices matrices) {
    matrices.is_transposed = !matrices.is_transposed;
    return matrices;
}

// Enqueues product = factor * a b for each of the `batch` matrices, or adds it if `accumulate`.
// Throws std::invalid_argument if the shapes do not fit. `product` must not be transposed.
void multiply_batch(Device& device, int batch, float factor, BatchedMatrices a, BatchedMatrices b,
                    BatchedMatrices product, bool accumulate = false);

}  // namespace ddp
