#include "03_network/layers/matrix.hpp"

#include <stdexcept>
#include <string>

#include "common/gpu/check.hpp"

namespace ddp {

void multiply_matrices(Device& device, Matrix a, Matrix b, float* product, bool accumulate) {
    const int m = a.is_transposed ? a.columns : a.rows;
    const int k = a.is_transposed ? a.rows : a.columns;
    const int n = b.is_transposed ? b.rows : b.columns;
    const int b_rows = b.is_transposed ? b.columns : b.rows;
    if (k != b_rows)
        throw std::invalid_argument("a matrix with " + std::to_string(k) +
                                    " columns cannot be multiplied with one of " +
                                    std::to_string(b_rows) + " rows");
    // cuBLAS is column-major: to it a row-major matrix looks transposed. So we ask for the
    // transposed product, b^T a^T, and hand over b and a as they are.
    const float one = 1.0f;
    const float beta = accumulate ? 1.0f : 0.0f;
    DDP_CHECK(cublasSgemm(device.blas(), b.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                          a.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, n, m, k, &one, b.data,
                          b.columns, a.data, a.columns, &beta, product, n));
}

}  // namespace ddp
