#pragma once
// Products of row-major matrices in device memory, by cuBLAS.
#include "01_sgd/device.hpp"

namespace ddp {

// `rows` x `columns` numbers as they lie in memory, to be read like that or transposed.
struct Matrix {
    const float* data;
    int rows, columns;
    bool is_transposed = false;
};

inline Matrix transposed(Matrix matrix) {
    matrix.is_transposed = !matrix.is_transposed;
    return matrix;
}

// product = a b, or product += a b. `product` is as many rows high as a and as many columns wide as
// b (as they are read). Throws std::invalid_argument if a's columns are not b's rows.
void multiply_matrices(Device& device, Matrix a, Matrix b, float* product, bool accumulate = false);

}  // namespace ddp
