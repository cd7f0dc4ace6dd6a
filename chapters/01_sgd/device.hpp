#pragma once
// Access to a GPU: a stream, a cuBLAS handle, and memory that every step reuses.
//
// A training step allocates and frees the same tensors every time. Device keeps freed blocks and
// reuses them, so that nothing is allocated after the first step. This matters because cudaMalloc
// and cudaFree may wait for the whole GPU. Later several ranks train together, and their kernels
// wait for each other. Such ranks must not allocate at all, not even in their first step: they
// reserve their memory before they begin.
#include <cublas_v2.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "common/gpu/gpu.hpp"
#include "common/gpu/parts.hpp"

namespace ddp {

// A stream with its memory. It is used by one host thread.
class Device {
  public:
    // Reserves `reserved_bytes` of memory. Blocks that do not fit are allocated on demand.
    explicit Device(std::size_t reserved_bytes = 0,
                    PartedMemory::Allocate allocate_memory = device_memory);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    Stream& stream() { return stream_; }
    cublasHandle_t blas() { return blas_; }

    // Returns at least `bytes` of device memory, not initialised. The block becomes free when its
    // last owner is destroyed. Work that is on stream() by then may still use the block, because
    // the next owner's work comes later on the same stream. Only the thread that uses the
    // Device may call this and destroy owners. `where` is the caller's place, for error messages.
    std::shared_ptr<std::byte> allocate(std::size_t bytes, Where where);

    struct Memory {
        std::size_t live_bytes = 0;      // in use by tensors now
        std::size_t peak_bytes = 0;      // the largest live_bytes so far
        std::size_t reserved_bytes = 0;  // allocated on the GPU, whether in use or free
        std::size_t allocations = 0;     // calls of cudaMalloc so far
    };
    // Returns the current numbers. Block sizes are rounded up to a multiple of 512 bytes.
    const Memory& memory() const;

    // Calls `observer` after every change of live_bytes, on the host, from now on. It must not
    // throw: tensors are freed in destructors. An empty function ends the observation.
    using MemoryObserver = std::function<void(const Memory& now)>;
    void observe_memory(MemoryObserver observer);

  private:
    struct CachingAllocator;
    Stream stream_;
    cublasHandle_t blas_ = nullptr;
    std::shared_ptr<CachingAllocator> allocator_;
};

}  // namespace ddp
