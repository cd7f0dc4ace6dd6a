#include <cblas.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "capture.hpp"
#include "cublas_v2.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_on_cpu/settings.hpp"
#include "memory.hpp"
#include "multiprocessors.hpp"
#include "protection.hpp"
#include "runtime.hpp"

// Undo and make the choice of kernels that OpenBLAS makes when it is loaded. Both are in its
// library but in no header, and some builds keep them to themselves.
extern "C" {
[[gnu::weak]] void gotoblas_dynamic_quit();
[[gnu::weak]] void gotoblas_dynamic_init();
}

struct cublasContext {
    cudaStream_t stream = nullptr;
};

namespace cuda_on_cpu {
namespace {

// Returns whether the processor is AMD's Zen 4: of family 25, with AVX-512.
bool is_zen_4() {
#if defined(__x86_64__)
    unsigned int eax = 0, ebx = 0, ecx = 0, edx = 0;
    __get_cpuid(1, &eax, &ebx, &ecx, &edx);
    const unsigned int family = ((eax >> 8) & 0xf) + ((eax >> 20) & 0xff);
    return __builtin_cpu_is("amd") && __builtin_cpu_supports("avx512f") && family == 25;
#else
    return false;
#endif
}

// OpenBLAS takes an AMD processor with AVX-512 for an Intel one. Zen 4 computes 512 bits in two
// halves, and the kernels for AVX2 are faster there: an eighth for the products of 03's MLP
// (README.md has others). Zen 5 has the full width, and they are not. Runs before main, when
// nothing is multiplied yet.
[[gnu::constructor]] void choose_kernels_of_blas() {
    constexpr const char* variable = "OPENBLAS_CORETYPE";
    if (!is_zen_4() || std::getenv(variable) != nullptr || gotoblas_dynamic_init == nullptr ||
        gotoblas_dynamic_quit == nullptr)
        return;
    setenv(variable, "Haswell", 1);
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
    unsetenv(variable);  // a program that is started from this one chooses itself
}

struct Matrix {
    const void* data;
    int rows, columns, leading;
    long long stride;
    cudaDataType type = CUDA_R_32F;

    std::size_t element_bytes() const { return type == CUDA_R_32F ? 4 : 2; }
    // Returns how many elements one matrix of the batch spans.
    long long span() const {
        return rows == 0 || columns == 0 ? 0 : static_cast<long long>(columns - 1) * leading + rows;
    }
};

template <class Short>
const float* lengthened(const Matrix& matrix, std::vector<float>& memory) {
    const auto* from = static_cast<const Short*>(matrix.data);
    memory.resize(static_cast<std::size_t>(matrix.span()));
    for (std::size_t i = 0; i < memory.size(); i++)
        memory[i] = from[i];
    return memory.data();
}

// Returns matrix `i` of the batch as floats: where it lies, or converted into `memory`. A matrix of
// 16 bits comes alone.
const float* floats_of(const Matrix& matrix, int i, std::vector<float>& memory) {
    if (matrix.type == CUDA_R_16F)
        return lengthened<__half>(matrix, memory);
    if (matrix.type == CUDA_R_16BF)
        return lengthened<__nv_bfloat16>(matrix, memory);
    return static_cast<const float*>(matrix.data) + i * matrix.stride;
}

struct MultiplyMatrices final : Command {
    void run(Stream& stream) override {
        const auto held = HeldMultiprocessors::for_some(settings().crowded ? processors() : 0);
        stream.begin_kernel();
        DeviceAccess access;
        std::vector<float> memory_a, memory_b;
        for (int i = 0; i < batch; i++)
            cblas_sgemm(CblasColMajor, transpose_a ? CblasTrans : CblasNoTrans,
                        transpose_b ? CblasTrans : CblasNoTrans, m, n, k, alpha,
                        floats_of(a, i, memory_a), a.leading, floats_of(b, i, memory_b), b.leading,
                        beta, c + i * stride_c, leading_c);
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
    const long long bytes = ((batch - 1) * matrix.stride + matrix.span()) *
                            static_cast<long long>(matrix.element_bytes());
    const auto left =
        allocation->begin + allocation->bytes - static_cast<const std::byte*>(matrix.data);
    if (bytes > left)
        return shape + " needs " + std::to_string(bytes) + " bytes, and only " +
               std::to_string(left) + " are left from " + describe_address(matrix.data);
    return "";
}

// Refuses the first product of a shape, for which cuBLAS may have to load a kernel, while another
// kernel may wait.
cudaError_t check_shape_is_loaded(const MultiplyMatrices& product, const std::string& caller) {
    if (!plays_loading())
        return cudaSuccess;
    using Kind = std::array<int, 7>;
    static auto* loaded = new std::set<Kind>;
    static std::mutex mutex;
    const Kind kind{product.transpose_a, product.transpose_b, product.m,     product.n,
                    product.k,           product.batch,       product.a.type};
    std::lock_guard lock(mutex);
    if (loaded->contains(kind))
        return cudaSuccess;
    const cudaError_t status = check_no_kernel_waits(
        caller,
        "the first product of " + std::to_string(product.m) + " x " + std::to_string(product.n) +
            " x " + std::to_string(product.k) + ", whose kernel must be loaded",
        "compute one of this shape before");
    if (status == cudaSuccess)
        loaded->insert(kind);
    return status;
}

// Checks a call of `name` and enqueues it.
cublasStatus_t enqueue(cublasHandle_t handle, const char* name, MultiplyMatrices multiply,
                       Where where) {
    const std::string caller = name + (" at " + to_string(where));
    const int m = multiply.m, n = multiply.n;
    if (m < 0 || n < 0 || multiply.k < 0 || multiply.batch < 0)
        return refuse(caller + " was given a negative size");
    if (m == 0 || n == 0 || multiply.batch == 0)
        return CUBLAS_STATUS_SUCCESS;
    const Matrix c{multiply.c, m, n, multiply.leading_c, multiply.stride_c};
    for (const auto& [letter, matrix] :
         {std::pair{"A", multiply.a}, std::pair{"B", multiply.b}, std::pair{"C", c}})
        if (const std::string wrong = check_matrix(letter, matrix, multiply.batch); !wrong.empty())
            return refuse(caller + ": matrix " + wrong);
    if (check_shape_is_loaded(multiply, caller) != cudaSuccess)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    const auto stream = find_stream(handle->stream, name);
    if (!stream)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (begin_work(*stream, caller.c_str()) != cudaSuccess)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    place(*stream, [&](void* memory) { return new (memory) MultiplyMatrices(multiply); });
    return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
    if (enter_call("cublasCreate") != cudaSuccess || check_safe("cublasCreate") != cudaSuccess ||
        check_no_kernel_waits("cublasCreate", "allocates device memory") != cudaSuccess)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    wait_inside_driver();
    openblas_set_num_threads(
        1);  // ranks share the cores; one thread a rank, and the same bits each time
    *handle = new cublasContext;
    live_blas_handles++;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
    // cuBLAS documents that it waits for the device. A handle that stays is named at exit.
    if (check_safe("cublasDestroy") != cudaSuccess ||
        check_no_kernel_waits("cublasDestroy", "synchronises with the device") != cudaSuccess)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    wait_inside_driver();
    delete handle;
    live_blas_handles--;
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
        case CUBLAS_STATUS_INVALID_VALUE:
        case CUBLAS_STATUS_NOT_SUPPORTED:
            return cudaGetErrorString(cudaErrorInvalidValue);
        case CUBLAS_STATUS_NOT_INITIALIZED:
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
    MultiplyMatrices multiply;
    multiply.transpose_a = transpose_a == CUBLAS_OP_T;
    multiply.transpose_b = transpose_b == CUBLAS_OP_T;
    multiply.m = m, multiply.n = n, multiply.k = k, multiply.batch = batch;
    multiply.alpha = *alpha, multiply.beta = *beta;
    multiply.a = {a, multiply.transpose_a ? k : m, multiply.transpose_a ? m : k, lda, stride_a};
    multiply.b = {b, multiply.transpose_b ? n : k, multiply.transpose_b ? k : n, ldb, stride_b};
    multiply.c = c, multiply.leading_c = ldc, multiply.stride_c = stride_c;
    return enqueue(handle, "cublasSgemm", multiply, where);
}

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t transpose_a,
                           cublasOperation_t transpose_b, int m, int n, int k, const float* alpha,
                           const float* a, int lda, const float* b, int ldb, const float* beta,
                           float* c, int ldc, Where where) {
    return cublasSgemmStridedBatched(handle, transpose_a, transpose_b, m, n, k, alpha, a, lda, 0, b,
                                     ldb, 0, beta, c, ldc, 0, 1, where);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transpose_a,
                            cublasOperation_t transpose_b, int m, int n, int k, const void* alpha,
                            const void* a, cudaDataType type_a, int lda, const void* b,
                            cudaDataType type_b, int ldb, const void* beta, void* c,
                            cudaDataType type_c, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t, Where where) {
    if (enter_call("cublasGemmEx") != cudaSuccess)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (type_a != type_b || type_a == CUDA_R_32F || type_c != CUDA_R_32F ||
        compute != CUBLAS_COMPUTE_32F) {
        refuse("cublasGemmEx at " + to_string(where) +
               " takes here A and B of CUDA_R_16F, or both of CUDA_R_16BF, and C of CUDA_R_32F "
               "with CUBLAS_COMPUTE_32F");
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    MultiplyMatrices multiply;
    multiply.transpose_a = transpose_a == CUBLAS_OP_T;
    multiply.transpose_b = transpose_b == CUBLAS_OP_T;
    multiply.m = m, multiply.n = n, multiply.k = k, multiply.batch = 1;
    multiply.alpha = *static_cast<const float*>(alpha);
    multiply.beta = *static_cast<const float*>(beta);
    multiply.a = {a, multiply.transpose_a ? k : m, multiply.transpose_a ? m : k, lda, 0, type_a};
    multiply.b = {b, multiply.transpose_b ? n : k, multiply.transpose_b ? k : n, ldb, 0, type_b};
    multiply.c = static_cast<float*>(c), multiply.leading_c = ldc, multiply.stride_c = 0;
    return enqueue(handle, "cublasGemmEx", multiply, where);
}
