#include "01_sgd/device.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace ddp {
namespace {

constexpr std::size_t unit = 512;  // blocks are multiples of this, so that near sizes share a block

}  // namespace

struct Device::CachingAllocator {
    std::vector<Buffer<std::byte>> pieces;  // of the GPU's memory; the first is reserved
    std::byte* unused = nullptr;            // of what is reserved
    std::size_t unused_bytes = 0;
    std::multimap<std::size_t, std::byte*> free;  // dropped blocks, by size
    Memory memory;

    std::byte* add_piece(std::size_t bytes, Where where) {
        pieces.emplace_back(bytes, where);
        memory.allocations++;
        memory.reserved_bytes += bytes;
        return pieces.back().data();
    }
    void reserve(std::size_t bytes) {
        unused = add_piece(bytes, Where::current());
        unused_bytes = bytes;
    }

    // A dropped block of this very size; else a new one. A larger one would do, but the step that
    // takes it may miss it later: only like for like promises that a step like the one before finds
    // all it needs.
    std::byte* take(std::size_t bytes, Where where) {
        if (const auto fit = free.find(bytes); fit != free.end()) {
            std::byte* block = fit->second;
            free.erase(fit);
            return block;
        }
        if (bytes > unused_bytes)
            return add_piece(bytes, where);
        unused_bytes -= bytes;
        return std::exchange(unused, unused + bytes);
    }
};

Device::Device(std::size_t reserved_bytes) : allocator_(std::make_shared<CachingAllocator>()) {
    DDP_CHECK(cublasCreate(&blas_));
    DDP_CHECK(cublasSetStream(blas_, stream_));
    if (reserved_bytes > 0)
        allocator_->reserve(reserved_bytes);
}

Device::~Device() {
    cublasDestroy(blas_);
}

std::shared_ptr<std::byte> Device::allocate(std::size_t bytes, Where where) {
    const std::size_t size = std::max<std::size_t>(1, (bytes + unit - 1) / unit) * unit;
    std::byte* block = allocator_->take(size, where);
    Memory& memory = allocator_->memory;
    memory.live_bytes += size;
    memory.peak_bytes = std::max(memory.peak_bytes, memory.live_bytes);
    return {block, [allocator = allocator_, size](std::byte* dropped) {
                allocator->memory.live_bytes -= size;
                allocator->free.emplace(size, dropped);
            }};
}

const Device::Memory& Device::memory() const {
    return allocator_->memory;
}

}  // namespace ddp
