#pragma once
// A rank's one piece of device memory, and the arrays in it. Asking the device for memory while
// kernels wait for each other may wait for those kernels; taking a part of what we have does not.
// And peers need one address only.
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "common/gpu/gpu.hpp"

namespace ddp {

class SharedArena {
  public:
    // Everything in it begins at a multiple of this.
    static constexpr std::size_t unit = 256;

    // `bytes` of the current device's memory, not initialised.
    explicit SharedArena(std::size_t bytes);
    SharedArena(const SharedArena&) = delete;
    SharedArena& operator=(const SharedArena&) = delete;

    std::byte* data() { return memory_.data(); }
    std::size_t bytes() const { return memory_.size(); }

    // Where `bytes` of it are free, from the beginning of the arena; they are taken. Throws
    // std::runtime_error where they are not.
    std::size_t take(std::size_t bytes);
    // Gives back what take returned.
    void give_back(std::size_t offset);

  private:
    Buffer<std::byte> memory_;
    std::mutex mutex_;
    std::map<std::size_t, std::size_t> free_;   // offset and bytes
    std::map<std::size_t, std::size_t> taken_;  // the same
};

// `size` elements of T in a rank's arena, not initialised: a Buffer that peers can read.
template <class T>
class ArenaBuffer {
  public:
    ArenaBuffer() = default;
    ArenaBuffer(const std::shared_ptr<SharedArena>& arena, std::size_t size) : size_(size) {
        const std::size_t offset = arena->take(size * sizeof(T));
        data_ = std::shared_ptr<T>(reinterpret_cast<T*>(arena->data() + offset),
                                   [arena, offset](T*) { arena->give_back(offset); });
    }
    ArenaBuffer(ArenaBuffer&&) noexcept = default;
    ArenaBuffer& operator=(ArenaBuffer&&) noexcept = default;

    T* data() { return data_.get(); }
    const T* data() const { return data_.get(); }
    std::size_t size() const { return size_; }
    std::size_t bytes() const { return size_ * sizeof(T); }
    // For those who keep the memory longer than this object does.
    const std::shared_ptr<T>& share() const { return data_; }

    // As those of Buffer: of this very size, complete when they return.
    void copy_from(std::span<const T> host, Where where = Where::current()) {
        require_size(host.size(), where);
        if (size_ > 0)
            check(cudaMemcpy(data(), host.data(), bytes(),
                             cudaMemcpyHostToDevice DDP_CALLED_AT(where)),
                  "cudaMemcpy", where);
    }
    std::vector<T> to_host(Where where = Where::current()) const {
        std::vector<T> host(size_);
        if (size_ > 0)
            check(cudaMemcpy(host.data(), data(), bytes(),
                             cudaMemcpyDeviceToHost DDP_CALLED_AT(where)),
                  "cudaMemcpy", where);
        return host;
    }

  private:
    void require_size(std::size_t host_size, Where where) const {
        if (host_size != size_)
            throw GpuError("a copy of " + std::to_string(host_size) + " elements", where,
                           "the arena's buffer has " + std::to_string(size_));
    }

    std::shared_ptr<T> data_;
    std::size_t size_ = 0;
};

}  // namespace ddp
