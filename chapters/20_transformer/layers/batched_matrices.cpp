#include "20_transformer/layers/batched_matrices.hpp"

#include <stdexcept>

#include "common/gpu/gpu.hpp"

namespace ddp {
namespace {

// Returns rows and columns as the product reads them.
Shape shape_in_product(const BatchedMatrices& matrices) {
    if (matrices.is_transposed)
        return {matrices.columns, matrices.rows};
    return {matrices.rows, matrices.columns};
}

}  // namespace

// cuBLAS is column-major: it sees a row-major matrix transposed. So we ask for the transposed
// product, (a b)^T = b^T a^T, and pass b and a as they are, like multiply_matrices of 03_network.
void multiply_batch(Device& device, int batch, float factor, BatchedMatrices a, BatchedMatrices b,
                    BatchedMatrices product, bool accumulate) {
    const Shape left = shape_in_product(a), right = shape_in_product(b);
    const Shape expected{left[0], right[1]};
    if (left[1] != right[0] || shape_in_product(product) != expected)
        throw std::invalid_argument("matrices " + to_string(left) + " times " + to_string(right) +
                                    " do not make " + to_string(shape_in_product(product)));
    const float beta = accumulate ? 1.0f : 0.0f;
    DDP_CHECK(cublasSgemmStridedBatched(device.blas(), b.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                                        a.is_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                                        product.columns, product.rows, left[1], &factor, b.data,
                                        b.leading, b.stride, a.data, a.leading, a.stride, &beta,
                                        product.data, product.leading, product.stride, batch));
}

AttentionSizes attention_sizes(const Tensor& queries, const Tensor& keys, int sentences,
                               int heads) {
    const int width = queries.dim(1);
    if (keys.dim(1) != width || width % heads != 0 || queries.dim(0) % sentences != 0 ||
        keys.dim(0) % sentences != 0)
        throw std::invalid_argument(
            "attention takes queries and keys [sentences * tokens, width], not " +
            to_string(queries.shape()) + " and " + to_string(keys.shape()) + " of " +
            std::to_string(sentences) + " sentences and " + std::to_string(heads) + " heads");
    return {sentences, heads, queries.dim(0) / sentences, keys.dim(0) / sentences, width};
}

}  // namespace ddp
