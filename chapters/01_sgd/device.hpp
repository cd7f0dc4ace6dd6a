#pragma once
// The equipment of one rank: a stream, a cuBLAS handle, and memory that it uses again and again.
//
// A training step makes and drops the same tensors every time. Device keeps what is dropped and
// hands it out again, so that after the first step nothing is allocated: cudaMalloc and cudaFree
// may wait for the whole GPU, and with it for other ranks. Ranks that wait for each other must not
// do so at all, not even in their first step: they reserve their memory before they begin.
#include <cublas_v2.h>

#include <cstddef>
#include <memory>

#include "common/gpu/gpu.hpp"

namespace ddp {

class Device {
  public:
    // With `reserved_bytes` of device memory to begin with; what is needed beyond is added as it is
    // asked for.
    explicit Device(std::size_t reserved_bytes = 0);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    Stream& stream() { return stream_; }
    cublasHandle_t blas() { return blas_; }

    // At least `bytes` of device memory, not initialised, handed back when the last owner drops it.
    // What was enqueued on stream() before then may still use it: the next owner's work stands
    // behind in the same stream. Called, as the dropping, by the rank's own thread only.
    std::shared_ptr<std::byte> allocate(std::size_t bytes, Where where);

    struct Memory {
        std::size_t live_bytes = 0;      // in use by tensors now
        std::size_t peak_bytes = 0;      // the most that was ever in use
        std::size_t reserved_bytes = 0;  // taken from the GPU, in use or kept for use
        std::size_t allocations = 0;     // calls of cudaMalloc so far
    };
    const Memory& memory() const;

  private:
    struct CachingAllocator;
    Stream stream_;
    cublasHandle_t blas_ = nullptr;
    std::shared_ptr<CachingAllocator> allocator_;
};

}  // namespace ddp
