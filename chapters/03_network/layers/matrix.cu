#include "03_network/layers/matrix.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "common/gpu/gpu.hpp"
#include "common/gpu/rows.hpp"

namespace ddp {
namespace {

int rows_of(const Matrix& matrix) {
    return matrix.is_transposed ? matrix.columns : matrix.rows;
}
int columns_of(const Matrix& matrix) {
    return matrix.is_transposed ? matrix.rows : matrix.columns;
}

constexpr int tile_width = 32;  // a tile of 32 x 32 floats stays in the nearest cache

// Writes y [rows, columns] = transposed_y^T + bias, tile by tile. Without tiles one of the two
// matrices would be read or written in steps of a whole row.
__global__ void transpose_and_add_bias(int rows, int columns, const float* transposed_y,
                                       const float* bias, float* y) {
    const int tiles_across = (columns + tile_width - 1) / tile_width;
    const int tiles_down = (rows + tile_width - 1) / tile_width;
    for (std::size_t tile : row_range(static_cast<std::size_t>(tiles_across) * tiles_down)) {
        const int first_column = static_cast<int>(tile) / tiles_down * tile_width;
        const int first_row = static_cast<int>(tile) % tiles_down * tile_width;
        const int width = std::min(int{tile_width}, columns - first_column);
        const int last_row = std::min(first_row + tile_width, rows);
        for (int row = first_row; row < last_row; row++)
            for (std::size_t i : column_range(width)) {
                const std::size_t column = first_column + i;
                const float sum = transposed_y[column * rows + row];
                y[static_cast<std::size_t>(row) * columns + column] =
                    bias == nullptr ? sum : sum + bias[column];
            }
    }
}

}  // namespace

void multiply_matrices(Device& device, Matrix a, Matrix b, float* product, bool accumulate) {
    const int m = rows_of(a), k = columns_of(a), n = columns_of(b);
    if (k != rows_of(b))
        throw std::invalid_argument("a matrix with " + std::to_string(k) +
                                    " columns cannot be multiplied with one of " +
                                    std::to_string(rows_of(b)) + " rows");
    // cuBLAS is column-major: it sees a row-major matrix transposed. So we ask for the transposed
    // product, (a b)^T = b^T a^T, and pass b and a as they are.
    const float one = 1.0f;
    const float beta = accumulate ? 1.0f : 0.0f;
    DDP_CHECK(cublasSgemm(device.blas(), b.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                          a.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, n, m, k, &one, b.data,
                          b.columns, a.data, a.columns, &beta, product, n));
}

// The plain way is multiply_matrices(device, a, b, y), and then a kernel that adds the bias. This
// is the same, faster:
//
//     1. y^T = b^T a^T     the same sums of the same products, stored the other way round
//     2. y = (y^T)^T + bias
//
// In Linear, a is x and b is W^T, so step 1 computes W x^T. There the large matrix W is read as it
// lies in memory, and only the small x is transposed: OpenBLAS is then up to a third faster. Step 2
// costs nothing extra, since the bias needs a pass over y anyway.
void multiply_and_add_bias(Device& device, Matrix a, Matrix b, const float* bias, float* y) {
    const int rows = rows_of(a), columns = columns_of(b);
    const Tensor transposed_y(device, {columns, rows});
    multiply_matrices(device, transposed(b), transposed(a), transposed_y.data());
    const auto tiles = static_cast<std::size_t>((columns + tile_width - 1) / tile_width) *
                       static_cast<std::size_t>((rows + tile_width - 1) / tile_width);
    launch(device.stream(), rows_for(tiles, tile_width), transpose_and_add_bias, rows, columns,
           transposed_y.data(), bias, y);
}

}  // namespace ddp
