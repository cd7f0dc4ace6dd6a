#pragma once
// A rank's arena: one block of device memory, allocated at the start, and the arrays in it. Peers
// need one address only to reach all of them. And an array from the arena is there at once, while
// cudaMalloc may wait for kernels that wait for each other.
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "common/gpu/gpu.hpp"

namespace ddp {

class SharedArena {
  public:
    // All arrays begin at a multiple of this many bytes.
    static constexpr std::size_t unit = 256;

    // Allocates `bytes` of the current device's memory, not initialised.
    explicit SharedArena(std::size_t bytes);
    SharedArena(const SharedArena&) = delete;
    SharedArena& operator=(const SharedArena&) = delete;

    std::byte* data() { return memory_.data(); }
    std::size_t bytes() const { return memory_.size(); }

    // Reserves `bytes`, and returns their offset from the beginning of the arena, in bytes. Throws
    // std::runtime_error if there is no room.
    std::size_t take(std::size_t bytes);
    // Frees what take reserved at `offset`.
    void give_back(std::size_t offset);

  private:
    Buffer<std::byte> memory_;
    std::mutex mutex_;
    std::map<std::size_t, std::size_t> free_;      // bytes by offset
    std::map<std::size_t, std::size_t> reserved_;  // the same
};

// An array of `size` elements of T in a rank's arena, not initialised: a Buffer that peers can
// read.
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
    // Shares the memory with a caller that may keep it longer than this object.
    const std::shared_ptr<T>& share() const { return data_; }

    // Copy all elements from or to the host, and return when that is done, like Buffer's. Throw
    // GpuError if `host` has another size.
    void copy_from(std::span<const T> host, Where where = Where::current()) {
        require_size(host.size(), where);
        if (size_ > 0)
            copy_to_device(data(), host.data(), bytes(), where);
    }
    std::vector<T> to_host_now(Where where = Where::current()) const {
        std::vector<T> host(size_);
        if (size_ > 0)
            copy_to_host(host.data(), data(), bytes(), where);
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
