#include "01_sgd/device.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace ddp {
namespace {

constexpr std::size_t kUnit =
    512;  // blocks are multiples of this, so that near sizes share a block

}  // namespace

struct Device::Pool {
    std::multimap<std::size_t, Buffer<std::byte>> free;  // by size
    Memory memory;

    // A free block of this very size; else a new one. A larger one would do, but the step that
    // takes it may miss it later: only like for like promises that a step like the one before finds
    // all it needs.
    Buffer<std::byte> take(std::size_t bytes, Where where) {
        const auto fit = free.find(bytes);
        if (fit != free.end()) {
            Buffer<std::byte> block = std::move(fit->second);
            free.erase(fit);
            return block;
        }
        memory.allocations++;
        memory.reserved_bytes += bytes;
        return Buffer<std::byte>(bytes, where);
    }
};

Device::Device() : pool_(std::make_shared<Pool>()) {
    DDP_CHECK(cublasCreate(&blas_));
    DDP_CHECK(cublasSetStream(blas_, stream_));
}

Device::~Device() {
    cublasDestroy(blas_);
}

std::shared_ptr<std::byte> Device::allocate(std::size_t bytes, Where where) {
    const std::size_t size = std::max<std::size_t>(1, (bytes + kUnit - 1) / kUnit) * kUnit;
    auto block = std::make_shared<Buffer<std::byte>>(pool_->take(size, where));
    Memory& memory = pool_->memory;
    memory.live_bytes += block->size();
    memory.peak_bytes = std::max(memory.peak_bytes, memory.live_bytes);
    std::byte* data = block->data();
    return {data, [pool = pool_, block = std::move(block)](std::byte*) {
                pool->memory.live_bytes -= block->size();
                const std::size_t size = block->size();
                pool->free.emplace(size, std::move(*block));
            }};
}

const Device::Memory& Device::memory() const {
    return pool_->memory;
}

}  // namespace ddp
