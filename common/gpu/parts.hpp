#pragma once
// Memory that a program hands out in parts of few allocations.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "common/gpu/buffer.hpp"
#include "common/gpu/check.hpp"
#if !defined(DDP_CUDA)
#include <cuda_on_cpu/parts.hpp>
#include <cuda_on_cpu/settings.hpp>
#endif

namespace ddp {

// Allocate `bytes`: of the device, or pinned ones of the host. There, there is more room, and
// kernels reach it, too, but slowly: for a model that is initialised there and trained elsewhere.
inline std::shared_ptr<std::byte> device_memory(std::size_t bytes, Where where) {
    const auto owner = std::make_shared<Buffer<std::byte>>(bytes, where);
    return {owner, owner->data()};
}
inline std::shared_ptr<std::byte> pinned_memory(std::size_t bytes, Where where) {
    const auto owner = std::make_shared<PinnedBuffer<std::byte>>(bytes, where);
    return {owner, owner->data()};
}

// Its parts are of whole units of memory. On a CPU, CUDA_ON_CPU=strict looks behind each part as if
// cudaMalloc had given it, in a gap that stays free; a GPU does not.
class PartedMemory {
  public:
    using Allocate = std::shared_ptr<std::byte> (*)(std::size_t bytes, Where where);

    PartedMemory(Allocate allocate, std::size_t unit) : allocate_(allocate) {
#if defined(DDP_CUDA)
        (void)unit;
#else
        if (cuda_on_cpu::settings().strict)
            gap_ = std::max(unit, cuda_on_cpu::zone_behind_part);
#endif
    }

    // Allocates `bytes` for the parts that come next.
    void reserve(std::size_t bytes, Where where = Where::current()) {
        unused_ = add_segment(bytes, where);
        unused_bytes_ = bytes + gap_;
    }
    // Returns a new part: of what is reserved, or else an allocation of its own.
    std::byte* take(std::size_t bytes, Where where) {
        if (bytes + gap_ > unused_bytes_)
            return add_segment(bytes, where);
        unused_bytes_ -= bytes + gap_;
        return std::exchange(unused_, unused_ + bytes + gap_);
    }
    // Says that `where` was given `bytes` of the part of `room` bytes at `begin`.
    void name(std::byte* begin, std::size_t bytes, std::size_t room, Where where) const {
#if defined(DDP_CUDA)
        (void)begin, (void)bytes, (void)room, (void)where;
#else
        if (gap_ > 0)
            cuda_on_cpu::name_part(begin, bytes, room, where);
#endif
    }

    // Return how much was allocated, without the gaps, and in how many calls.
    std::size_t bytes() const {
        return bytes_;
    }
    std::size_t allocations() const {
        return segments_.size();
    }

  private:
    std::byte* add_segment(std::size_t bytes, Where where) {
        segments_.push_back(allocate_(bytes + gap_, where));
        bytes_ += bytes;
        return segments_.back().get();
    }

    const Allocate allocate_;
    std::size_t gap_ = 0;
    std::vector<std::shared_ptr<std::byte>> segments_;
    std::size_t bytes_ = 0;
    std::byte* unused_ = nullptr;  // the rest of what was reserved
    std::size_t unused_bytes_ = 0;
};

}  // namespace ddp
