#include "06_messages/support/gate.hpp"

#include <atomic>
#include <cuda/atomic>

#include "common/gpu/clock.hpp"
#include "common/gpu/launch.hpp"

namespace ddp {
namespace {

__global__ void wait_for_gate(unsigned int* is_open) {
    constexpr std::uint64_t longest_ns = 1'000'000'000;
    const std::uint64_t begin_ns = device_clock_ns();
    const cuda::atomic_ref<unsigned int, cuda::thread_scope_system> flag(*is_open);
    while (flag.load(cuda::memory_order_acquire) == 0 && device_clock_ns() - begin_ns < longest_ns)
        __nanosleep(200);
}

}  // namespace

// Pinned memory may wait for the kernels that run, and a kernel for a rank that is not here yet: it
// is made before anyone goes on, and freed when the run ends.
Gate::Gate(Rank& rank) : is_open_(std::make_shared<PinnedBuffer<unsigned int>>(1)) {
    rank.keep_until_run_ends(is_open_);
    rank.barrier();
}

void Gate::close(Stream& stream) {
    std::atomic_ref((*is_open_)[0]).store(0, std::memory_order_release);
    launch(stream, {1, 1}, wait_for_gate, is_open_->data());
}

void Gate::open() {
    std::atomic_ref((*is_open_)[0]).store(1, std::memory_order_release);
}

}  // namespace ddp
