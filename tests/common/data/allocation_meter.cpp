#include "tests/common/data/allocation_meter.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::size_t> requested{0};  // global, since operator new takes no other argument
}  // namespace

namespace ddp::test {
std::size_t bytes_requested() {
    return requested;
}
}  // namespace ddp::test

// The other forms call these, but for the one with nothrow under AddressSanitizer, which brings its
// own.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    requested += size;
    return std::malloc(size > 0 ? size : 1);
}
void* operator new(std::size_t size) {
    if (void* memory = operator new(size, std::nothrow))
        return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
