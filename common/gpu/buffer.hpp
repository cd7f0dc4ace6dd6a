#pragma once
// Owners of arrays in device memory and in pinned host memory.
#include <cuda_runtime.h>

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/gpu/check.hpp"

namespace ddp {

// Copy `bytes` from or to host memory, by the default stream; the copy is complete when the call
// returns. From memory that is not pinned, cudaMemcpy returns as soon as the bytes are staged (CUDA
// Runtime API, "API synchronization behavior"), and streams that do not wait for the default stream
// could read what was there before: the synchronisation waits for the rest.
inline void copy_to_device(void* device, const void* host, std::size_t bytes,
                           Where where = Where::current()) {
    check(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice DDP_CALLED_AT(where)),
          "cudaMemcpy", where);
    check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize", where);
}
inline void copy_to_host(void* host, const void* device, std::size_t bytes,
                         Where where = Where::current()) {
    check(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost DDP_CALLED_AT(where)),
          "cudaMemcpy", where);
}

// `size` elements of T in the current device's memory, not initialised. The host cannot read them
// directly; it copies them.
template <class T>
class Buffer {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    Buffer() = default;
    explicit Buffer(std::size_t size, Where where = Where::current()) : size_(size) {
        void* data = nullptr;
        if (size > 0)
            check(cudaMalloc(&data, size * sizeof(T) DDP_CALLED_AT(where)), "cudaMalloc", where);
        data_ = static_cast<T*>(data);
    }
    // Holds a copy of `host`, complete when the constructor returns.
    explicit Buffer(std::span<const T> host, Where where = Where::current())
        : Buffer(host.size(), where) {
        copy_from(host, where);
    }
    explicit Buffer(const std::vector<T>& host, Where where = Where::current())
        : Buffer(std::span<const T>(host), where) {}
    Buffer(Buffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    // Frees the memory. If cudaFree fails, the next checked call reports it.
    ~Buffer() { cudaFree(data_); }

    T* data() { return data_; }
    const T* data() const { return data_; }
    std::size_t size() const { return size_; }
    std::size_t bytes() const { return size_ * sizeof(T); }

    // Copies from or to host memory of exactly this size; the copy is complete when the call
    // returns. It waits for the default stream only: first synchronise the stream that writes the
    // buffer. Throws GpuError if the sizes differ or the copy fails.
    void copy_from(std::span<const T> host, Where where = Where::current()) {
        require_size(host.size(), where);
        if (size_ > 0)
            copy_to_device(data_, host.data(), bytes(), where);
    }
    void copy_to(std::span<T> host, Where where = Where::current()) const {
        require_size(host.size(), where);
        if (size_ > 0)
            copy_to_host(host.data(), data_, bytes(), where);
    }
    std::vector<T> to_host_now(Where where = Where::current()) const {
        std::vector<T> host(size_);
        copy_to(host, where);
        return host;
    }

  private:
    void require_size(std::size_t host_size, Where where) const {
        if (host_size != size_)
            throw GpuError("a copy of " + std::to_string(host_size) + " elements", where,
                           "the device buffer has " + std::to_string(size_));
    }

    T* data_ = nullptr;
    std::size_t size_ = 0;
};

// `size` elements of T in pinned host memory, not initialised. The host uses them like any array,
// and cudaMemcpyAsync copies them while the host goes on.
template <class T>
class PinnedBuffer {
    static_assert(std::is_trivially_copyable_v<T>);

  public:
    PinnedBuffer() = default;
    explicit PinnedBuffer(std::size_t size, Where where = Where::current()) : size_(size) {
        void* data = nullptr;
        if (size > 0)
            check(cudaMallocHost(&data, size * sizeof(T) DDP_CALLED_AT(where)), "cudaMallocHost",
                  where);
        data_ = static_cast<T*>(data);
    }
    PinnedBuffer(PinnedBuffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    PinnedBuffer& operator=(PinnedBuffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~PinnedBuffer() { cudaFreeHost(data_); }

    T* data() { return data_; }
    const T* data() const { return data_; }
    std::size_t size() const { return size_; }
    std::size_t bytes() const { return size_ * sizeof(T); }
    T& operator[](std::size_t i) { return data_[i]; }
    const T& operator[](std::size_t i) const { return data_[i]; }
    std::span<T> span() { return {data_, size_}; }
    std::span<const T> span() const { return {data_, size_}; }

  private:
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace ddp
