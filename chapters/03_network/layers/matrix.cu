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

// Replaces a negative number by 0. A NaN stays a NaN, and the loss shows it.
template <Activation activation>
__device__ float activate(float x) {
    return activation == Activation::relu && x < 0.0f ? 0.0f : x;
}

// Writes y [rows, columns] = transposed_y^T + bias, tile by tile. Without tiles one of the two
// matrices would be read or written in steps of a whole row.
template <Activation activation>
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
                    activate<activation>(bias == nullptr ? sum : sum + bias[column]);
            }
    }
}

// Adds the bias to every row of y [rows, columns], where it lies.
template <Activation activation>
__global__ void add_bias_to_rows(int rows, int columns, const float* bias, float* y) {
    for (std::size_t row : row_range(rows))
        for (std::size_t column : column_range(columns)) {
            float& sum = y[row * columns + column];
            sum = activate<activation>(bias == nullptr ? sum : sum + bias[column]);
        }
}

// A block adds up rows: a thread has a strip of neighbouring columns, and the lanes beside it
// have the next ones: a warp reads 32 numbers with one load; a CPU's thread makes vectors of its
// strip. Groups of lanes share the rows.
constexpr int max_lanes = kernels_run_on_cpu ? 1 : 32, strip = kernels_run_on_cpu ? 64 : 1;
constexpr int max_groups = 8;

// Adds up term(i), i being the place of a number in the matrix, down each column.
template <class Term>
__device__ void add_up_columns(int rows, int columns, const Term term, float* sums,
                               bool accumulate) {
    __shared__ float of_group[max_groups][max_lanes * strip];
    const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
    const int lanes = std::min(int{max_lanes}, threads), lane = thread % lanes;
    const int groups = std::min(int{max_groups}, threads / lanes), group = thread / lanes;
    const int width = lanes * strip;
    for (std::size_t tile : row_range((columns + width - 1) / width)) {
        const int first = static_cast<int>(tile) * width + lane * strip;
        const int count = group < groups ? std::min(int{strip}, columns - first) : 0;
        float mine[strip];
        for (int k = 0; k < count; k++)
            mine[k] = group == 0 && accumulate ? sums[first + k] : 0.0f;
        // Each group adds up every groups-th row ...
        for (int row = group; row < rows; row += groups) {
            const std::size_t begin = static_cast<std::size_t>(row) * columns + first;
            for (int k = 0; k < count; k++)
                mine[k] += term(begin + k);
        }
        for (int k = 0; k < count && groups > 1; k++)
            of_group[group][lane * strip + k] = mine[k];
        __syncthreads();
        // ... and the first group adds up the groups.
        for (int k = 0; k < count && group == 0; k++) {
            for (int other = 1; other < groups; other++)
                mine[k] += of_group[other][lane * strip + k];
            sums[first + k] = mine[k];
        }
        __syncthreads();
    }
}

__global__ void add_up_rows(int rows, int columns, const float* values, const float* factors,
                            float* sums, bool accumulate) {
    const auto term = [=](std::size_t i) {
        return factors == nullptr ? values[i] : values[i] * factors[i];
    };
    add_up_columns(rows, columns, term, sums, accumulate);
}

// Backward of ReLU, y = max(x, 0), on the way: each number of dx is added up when it is computed.
__global__ void relu_backward_and_add_up(int rows, int columns, const float* __restrict__ y,
                                         const float* __restrict__ dy, float* __restrict__ dx,
                                         float* sums, bool accumulate) {
    const auto term = [=](std::size_t i) { return dx[i] = y[i] > 0.0f ? dy[i] : 0.0f; };
    add_up_columns(rows, columns, term, sums, accumulate);
}

// Launches the kernel that sum_rows and relu_backward_and_sum_rows have in common.
template <class... Parameters, class... Arguments>
void launch_over_columns(Device& device, int columns, void (*kernel)(Parameters...),
                         const Arguments&... arguments) {
    constexpr std::size_t width = std::size_t{max_lanes} * strip;
    const std::size_t tiles = (static_cast<std::size_t>(columns) + width - 1) / width;
    launch(device.stream(), rows_for(tiles, max_lanes * max_groups), kernel, arguments...);
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

void add_bias(Device& device, int rows, int columns, const float* bias, float* y,
              Activation activation) {
    if (bias == nullptr && activation == Activation::none)
        return;
    const auto kernel = activation == Activation::relu ? add_bias_to_rows<Activation::relu>
                                                       : add_bias_to_rows<Activation::none>;
    launch(device.stream(), rows_for(rows, columns), kernel, rows, columns, bias, y);
}

// A GPU goes the plain way: the product, and then a kernel that adds the bias. On a CPU this is the
// same, faster:
//
//     1. y^T = b^T a^T     the same sums of the same products, stored the other way round
//     2. y = (y^T)^T + bias
//
// In Linear, a is x and b is W^T, so step 1 computes W x^T. There the large matrix W is read as it
// lies in memory, and only the small x is transposed: OpenBLAS is then up to a third faster. Step 2
// costs nothing extra, since the bias needs a pass over y anyway.
void multiply_and_add_bias(Device& device, Matrix a, Matrix b, const float* bias, float* y,
                           Activation activation) {
    const int rows = rows_of(a), columns = columns_of(b);
    if (!kernels_run_on_cpu) {
        multiply_matrices(device, a, b, y);
        add_bias(device, rows, columns, bias, y, activation);
        return;
    }
    const Tensor transposed_y(device, {columns, rows});
    multiply_matrices(device, transposed(b), transposed(a), transposed_y.data());
    const auto tiles = static_cast<std::size_t>((columns + tile_width - 1) / tile_width) *
                       static_cast<std::size_t>((rows + tile_width - 1) / tile_width);
    const auto kernel = activation == Activation::relu ? transpose_and_add_bias<Activation::relu>
                                                       : transpose_and_add_bias<Activation::none>;
    launch(device.stream(), rows_for(tiles, tile_width), kernel, rows, columns, transposed_y.data(),
           bias, y);
}

// The plain way is one thread for each column, which walks down the rows. This is the same, faster.
void sum_rows(Device& device, Matrix matrix, float* sums, bool accumulate, const float* factors) {
    launch_over_columns(device, matrix.columns, add_up_rows, matrix.rows, matrix.columns,
                        matrix.data, factors, sums, accumulate);
}

void relu_backward_and_sum_rows(Device& device, Matrix y, const float* dy, float* dx, float* sums,
                                bool accumulate) {
    launch_over_columns(device, y.columns, relu_backward_and_add_up, y.rows, y.columns, y.data, dy,
                        dx, sums, accumulate);
}

}  // namespace ddp
