#include "common/gpu/check.hpp"

#include "common/gpu/clock.hpp"

namespace ddp {
namespace {

std::string sentence(const std::string& call, Where where, const std::string& reason) {
    return call + " at " + where.file_name() + ":" + std::to_string(where.line()) +
           " failed: " + reason;
}

// Before main, and so before the first CUDA call of any program.
[[maybe_unused]] const bool is_set = (let_kernels_run_side_by_side(), true);

}  // namespace

GpuError::GpuError(const std::string& call, Where where, const std::string& reason)
    : std::runtime_error(sentence(call, where, reason)) {}

void check(cudaError_t error, const char* call, Where where) {
    if (error == cudaSuccess)
        return;
#if defined(DDP_CUDA)
    if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver)
        throw GpuError(call, where,
                       std::string("this program was built for a GPU, and none was found (") +
                           cudaGetErrorString(error) +
                           "); build it for this machine's CPU with the preset cpu, or run ./book "
                           "with --cpu");
#endif
    throw GpuError(call, where,
                   std::string(cudaGetErrorName(error)) + ", " + cudaGetErrorString(error));
}

void check(cublasStatus_t status, const char* call, Where where) {
    if (status != CUBLAS_STATUS_SUCCESS)
        throw GpuError(call, where, cublasGetStatusString(status));
}

}  // namespace ddp
