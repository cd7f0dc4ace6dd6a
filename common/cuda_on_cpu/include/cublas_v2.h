#pragma once
// The few routines of cuBLAS that the book calls, computed by OpenBLAS on the stream's own thread.
// Matrices are column-major and live in device memory; alpha and beta are host pointers, read at
// the call.
#include "cuda_on_cpu/runtime_api.hpp"

using cublasHandle_t = struct cublasContext*;

enum cublasStatus_t {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_NOT_SUPPORTED = 15,
};

enum cublasOperation_t {
    CUBLAS_OP_N = 0,
    CUBLAS_OP_T = 1,
};

// The types of elements and of sums that cublasGemmEx takes here.
enum cudaDataType {
    CUDA_R_32F = 0,
    CUDA_R_16F = 2,
    CUDA_R_16BF = 14,
};
enum cublasComputeType_t {
    CUBLAS_COMPUTE_32F = 68,
};
enum cublasGemmAlgo_t {
    CUBLAS_GEMM_DEFAULT = -1,
};

cublasStatus_t cublasCreate(cublasHandle_t* handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
// Returns the status in words, with the exact cause if it was this thread's last error.
const char* cublasGetStatusString(cublasStatus_t status);

// C = alpha op(A) op(B) + beta C, where op(A) is m x k, op(B) is k x n and C is m x n.
cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t transpose_a,
                           cublasOperation_t transpose_b, int m, int n, int k, const float* alpha,
                           const float* a, int lda, const float* b, int ldb, const float* beta,
                           float* c, int ldc,
                           cuda_on_cpu::Where where = cuda_on_cpu::Where::current());

// The same for `batch` matrices that lie `stride` elements apart.
cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transpose_a,
                                         cublasOperation_t transpose_b, int m, int n, int k,
                                         const float* alpha, const float* a, int lda,
                                         long long stride_a, const float* b, int ldb,
                                         long long stride_b, const float* beta, float* c, int ldc,
                                         long long stride_c, int batch,
                                         cuda_on_cpu::Where where = cuda_on_cpu::Where::current());

// cublasSgemm with A and B of 16 bits, both CUDA_R_16F or both CUDA_R_16BF; C, alpha and beta are
// floats. Products are exact and sums are float, as on tensor cores; other types are refused. It
// takes as long as cublasSgemm, and the conversion on top.
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transpose_a,
                            cublasOperation_t transpose_b, int m, int n, int k, const void* alpha,
                            const void* a, cudaDataType type_a, int lda, const void* b,
                            cudaDataType type_b, int ldb, const void* beta, void* c,
                            cudaDataType type_c, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algorithm,
                            cuda_on_cpu::Where where = cuda_on_cpu::Where::current());
