#pragma once
// The kernels that an answer launches: how many, of which shape, and whether their threads work
// together.
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "common/gpu/gpu.hpp"
#include "tests/exercises/support/gate.hpp"

namespace ddp::test {

struct SeenLaunch {
    unsigned int blocks, threads;  // in the grid, and in a block
    // Whether the threads of its blocks ever waited for each other, at a barrier or in a warp's
    // exchange.
    bool works_together;
};

// Returns the kernels that ran while work() did, which must synchronize, in their order. On a GPU
// nobody counts them: then it returns none, and can_see_launches is false.
inline constexpr bool can_see_launches = kernels_run_on_cpu;
std::vector<SeenLaunch> launches_in(const std::function<void()>& work);

// Checks that work() has its result made by `blocks` blocks of `threads` threads, which work
// together. What comes before and behind that launch has any shape if `blocks` is more than one.
// Throws Wrong, which begins with `what`.
void check_shape(unsigned int blocks, unsigned int threads, const std::string& what,
                 const std::function<void()>& work);

// Checks that kernels do work(), which must synchronize, besides `others` of which the test knows:
// and not in a single thread, if this run asks for several. `what` begins the sentences.
void check_kernels(const std::string& what, const std::function<void()>& work,
                   std::ptrdiff_t others = 0);

// Calls `enqueue`, which should only enqueue work on the stream, while that stands still, and with
// the data of `on_device` not yet there: it is copied from `source` when the stream goes on. Throws
// Wrong, which begins with `what`, if the call waits.
template <class T>
void check_host_goes_on(const std::string& what, Stream& stream, Buffer<T>& on_device,
                        const Buffer<T>& source, const std::function<void()>& enqueue) {
    const std::string wrong = wrong_if_host_waits(stream, [&] {
        DDP_CHECK(cudaMemcpyAsync(on_device.data(), source.data(), source.size() * sizeof(T),
                                  cudaMemcpyDeviceToDevice, stream));
        enqueue();
    });
    stream.synchronize();
    if (!wrong.empty())
        throw Wrong(what + ": " + wrong);
}

}  // namespace ddp::test
