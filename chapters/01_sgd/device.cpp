// Memory that every step uses again. cudaMalloc is called in the first step only:
//
//     step 1   allocate 512 B -> cudaMalloc     allocate 2 KiB -> cudaMalloc     both become free
//     step 2   allocate 512 B -> the free block of 512 B         allocate 2 KiB -> that of 2 KiB
//
// A block that becomes free may still be in use by work in the stream. That does no harm: its next
// owner's work comes later in the same stream.
#include "01_sgd/device.hpp"

#include <algorithm>
#include <map>

namespace ddp {
namespace {

constexpr std::size_t unit = 512;  // bytes; sizes are rounded up to it, so that near ones are equal

}  // namespace

// Hands out blocks: parts of device memory that come back.
struct Device::CachingAllocator {
    explicit CachingAllocator(PartedMemory::Allocate allocate_memory)
        : parts(allocate_memory, unit) {}

    struct Block {
        std::byte* data = nullptr;
        std::size_t bytes = 0;
    };

    PartedMemory parts;
    std::multimap<std::size_t, std::byte*> free;  // blocks without an owner, by size
    Memory memory;
    MemoryObserver observer;

    // Counts `bytes` more, or fewer, that tensors use.
    void count(std::ptrdiff_t bytes) {
        memory.live_bytes += static_cast<std::size_t>(bytes);
        memory.peak_bytes = std::max(memory.peak_bytes, memory.live_bytes);
        memory.reserved_bytes = parts.bytes();
        memory.allocations = parts.allocations();
        if (observer)
            observer(memory);
    }

    // Returns the smallest free block that is large enough, or else a new one. A step that repeats
    // the one before finds blocks of its own sizes. Where sentences give each step other sizes, the
    // memory of longer ones serves the shorter ones as well; one block for each size that ever came
    // would add up to many times the memory of a step. A block more than twice as large is left to
    // those that need it.
    Block allocate_block(std::size_t bytes, Where where) {
        if (const auto fit = free.lower_bound(bytes);
            fit != free.end() && fit->first <= 2 * bytes) {
            const Block block{fit->second, fit->first};
            free.erase(fit);
            return block;
        }
        return {parts.take(bytes, where), bytes};
    }
};

Device::Device(std::size_t reserved_bytes, PartedMemory::Allocate allocate_memory)
    : allocator_(std::make_shared<CachingAllocator>(allocate_memory)) {
    if (reserved_bytes > 0)
        allocator_->parts.reserve(reserved_bytes);  // may fail, and the handle has no owner yet
    allocator_->count(0);
    DDP_CHECK(cublasCreate(&blas_));
    DDP_CHECK(cublasSetStream(blas_, stream_));
}

Device::~Device() {
    cublasDestroy(blas_);
}

std::shared_ptr<std::byte> Device::allocate(std::size_t bytes, Where where) {
    const std::size_t size = std::max<std::size_t>(1, (bytes + unit - 1) / unit) * unit;
    const auto [block, capacity] = allocator_->allocate_block(size, where);
    allocator_->parts.name(block, bytes, capacity, where);
    allocator_->count(static_cast<std::ptrdiff_t>(size));
    // The owner's deleter returns the block to the free ones. It keeps the allocator alive.
    return {block, [allocator = allocator_, size, capacity = capacity](std::byte* dropped) {
                allocator->free.emplace(capacity, dropped);
                allocator->count(-static_cast<std::ptrdiff_t>(size));
            }};
}

const Device::Memory& Device::memory() const {
    return allocator_->memory;
}

void Device::observe_memory(MemoryObserver observer) {
    allocator_->observer = std::move(observer);
}

}  // namespace ddp
