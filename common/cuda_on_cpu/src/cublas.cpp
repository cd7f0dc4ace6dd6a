#include <cblas.h>

#include <string>

#include "cublas_v2.h"
#include "memory.hpp"
#include "protection.hpp"
#include "runtime.hpp"

struct cublasContext {
    cudaStream_t stream = nullptr;
};

namespace cuda_on_cpu {
namespace {

struct Matrix {
    const float* data;
    int rows, columns, leading;
    long long stride;
};

struct MultiplyMatrices final : Command {
    void run(Stream&) override {
        DeviceAccess access;
        for (int i = 0; i < batch; i++)
            cblas_sgemm(CblasColMajor, transpose_a ? CblasTrans : CblasNoTrans,
                        transpose_b ? CblasTrans : CblasNoTrans, m, n, k, alpha,
                        a.data + i * a.stride, a.leading, b.data + i * b.stride, b.leading, beta,
                        c + i * stride_c, leading_c);
    }
    bool transpose_a, transpose_b;
    int m, n, k, batch, leading_c;
    float alpha, beta;
    Matrix a, b;
    float* c;
    long long stride_c;
};

cublasStatus_t refuse(const std::string& what) {
    call_failed(cudaErrorInvalidValue, what);
    return CUBLAS_STATUS_INVALID_VALUE;
}

// Empty if all of the batch's matrices lie in one allocation; else what is wrong.
std::string check_matrix(const char* name, const Matrix& matrix, int batch) {
    const std::string shape = std::string(name) + " (" + std::to_string(matrix.rows) + " x " +
                              std::to_string(matrix.columns) + ")";
    if (matrix.leading < std::max(1, matrix.rows))
        return shape + " has a leading dimension of " + std::to_string(matrix.leading) +
               ", less than its rows";
    const std::optional<Allocation> allocation = find_allocation(matrix.data);
    if (!allocation)
        return shape + " is not in device memory: " + describe_address(matrix.data);
    const long long elements = (batch - 1) * matrix.stride +
                               static_cast<long long>(matrix.columns - 1) * matrix.leading +
                               matrix.rows;
    const auto left =
        allocation->begin + allocation->bytes - reinterpret_cast<const std::byte*>(matrix.data);
    if (elements * static_cast<long long>(sizeof(float)) > left)
        return shape + " needs " + std::to_string(elements * 4) + " bytes, and only " +
               std::to_string(left) + " are left from " + describe_address(matrix.data);
    return "";
}

}  // namespace
}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
    if (enter_call("cublasCreate") != cudaSuccess)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    openblas_set_num_threads(
        1);  // ranks share the cores; one thread a rank, and the same bits each time
    *handle = new cublasContext;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
    handle->stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusString(cublasStatus_t status) {
    switch (status) {
        case CUBLAS_STATUS_SUCCESS:
            return "CUBLAS_STATUS_SUCCESS";
        case CUBLAS_STATUS_NOT_INITIALIZED:
            return "CUBLAS_STATUS_NOT_INITIALIZED";
        case CUBLAS_STATUS_INVALID_VALUE:
            return cudaGetErrorString(cudaErrorInvalidValue);
        case CUBLAS_STATUS_EXECUTION_FAILED:
            return cudaGetErrorString(cudaPeekAtLastError());
    }
    return "unknown status";
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transpose_a,
                                         cublasOperation_t transpose_b, int m, int n, int k,
                                         const float* alpha, const float* a, int lda,
                                         long long stride_a, const float* b, int ldb,
                                         long long stride_b, const float* beta, float* c, int ldc,
                                         long long stride_c, int batch, Where where) {
    if (enter_call("cublasSgemm") != cudaSuccess)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    const std::string caller = "cublasSgemm at " + text_of(where);
    if (m < 0 || n < 0 || k < 0 || batch < 0)
        return refuse(caller + " was given a negative size");
    if (m == 0 || n == 0 || batch == 0)
        return CUBLAS_STATUS_SUCCESS;
    MultiplyMatrices multiply;
    multiply.transpose_a = transpose_a == CUBLAS_OP_T;
    multiply.transpose_b = transpose_b == CUBLAS_OP_T;
    multiply.m = m, multiply.n = n, multiply.k = k, multiply.batch = batch;
    multiply.alpha = *alpha, multiply.beta = *beta;
    multiply.a = {a, multiply.transpose_a ? k : m, multiply.transpose_a ? m : k, lda, stride_a};
    multiply.b = {b, multiply.transpose_b ? n : k, multiply.transpose_b ? k : n, ldb, stride_b};
    multiply.c = c, multiply.leading_c = ldc, multiply.stride_c = stride_c;
    for (const auto& [name, matrix] : {std::pair{"A", multiply.a}, std::pair{"B", multiply.b},
                                       std::pair{"C", Matrix{c, m, n, ldc, stride_c}}})
        if (const std::string wrong = check_matrix(name, matrix, batch); !wrong.empty())
            return refuse(caller + ": matrix " + wrong);
    const auto stream = find_stream(handle->stream, "cublasSgemm");
    if (!stream)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    order_with_default_stream(*stream);
    stream->enqueue([&](void* memory) { return new (memory) MultiplyMatrices(multiply); });
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t transpose_a,
                           cublasOperation_t transpose_b, int m, int n, int k, const float* alpha,
                           const float* a, int lda, const float* b, int ldb, const float* beta,
                           float* c, int ldc, Where where) {
    return cublasSgemmStridedBatched(handle, transpose_a, transpose_b, m, n, k, alpha, a, lda, 0, b,
                                     ldb, 0, beta, c, ldc, 0, 1, where);
}
