#pragma once
// Many small products of row-major matrices in one call of cuBLAS.
#include <cmath>

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

// The sizes of attention, and where the matrices of a head are. A head is a band of columns.
struct AttentionSizes {
    int sentences, heads, queries, keys, width;

    __host__ __device__ std::size_t rows() const {  // of all score matrices
        return static_cast<std::size_t>(sentences) * heads * queries;
    }
    int head_width() const { return width / heads; }
    float scale() const { return 1.0f / std::sqrt(static_cast<float>(head_width())); }

    // Returns one head of all sentences, of a tensor [sentences * tokens, width].
    BatchedMatrices head(const Tensor& tensor, int h, int tokens) const {
        return {tensor.data() + h * head_width(), tokens, head_width(), width,
                static_cast<long long>(tokens) * width};
    }
    // Returns one head's matrices of all sentences, of a tensor [sentences, heads, queries, keys].
    BatchedMatrices scores(const Tensor& tensor, int h) const {
        const long long matrix = static_cast<long long>(queries) * keys;
        return {tensor.data() + h * matrix, queries, keys, keys, heads * matrix};
    }
};

// Returns the sizes; throws std::invalid_argument unless these two are the queries and the keys of
// so many sentences.
AttentionSizes attention_sizes(const Tensor& queries, const Tensor& keys, int sentences, int heads);

}  // namespace ddp
