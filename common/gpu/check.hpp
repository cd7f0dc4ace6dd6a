#pragma once
// Checked calls. Every call of the CUDA runtime or of cuBLAS is wrapped:
// DDP_CHECK(cudaMalloc(&p, bytes)).
#include <cublas_v2.h>
#include <cuda_runtime.h>

#if defined(DDP_CUDA)
#include <source_location>
#endif
#include <stdexcept>
#include <string>

namespace ddp {

#if defined(DDP_CUDA)
using Where = std::source_location;
#else
using Where = cuda_on_cpu::Where;
#endif

// A call that failed. The message has the call as written, its file and line, and the API's own
// words.
class GpuError : public std::runtime_error {
  public:
    GpuError(const std::string& call, Where where, const std::string& reason);
};

// Throws GpuError unless `error` is success. `call` is the expression's text.
void check(cudaError_t error, const char* call, Where where = Where::current());
void check(cublasStatus_t status, const char* call, Where where = Where::current());

}  // namespace ddp

#define DDP_CHECK(call) ::ddp::check((call), #call)

// On a CPU the runtime's calls take one more argument, the place to name in a message
// (cuda_on_cpu). Owners pass on the place where they were made, which says more than their own.
#if defined(DDP_CUDA)
#define DDP_CALLED_AT(where)
#else
#define DDP_CALLED_AT(where) , where
#endif
