#pragma once
// The kernels that an answer launches: how many, of which shape, and whether their threads work
// together.
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "common/gpu/gpu.hpp"
#include "exercises/support/gate.hpp"

#if !defined(DDP_CUDA)
#include "cuda_on_cpu/observe.hpp"
#endif

namespace ddp::test {

struct SeenLaunch {
    unsigned int blocks = 0, threads = 0;  // in the grid, and in a block
    // Whether the threads of its blocks ever waited for each other, at a barrier or in a warp's
    // exchange.
    bool works_together = false;
#if !defined(DDP_CUDA)
    cuda_on_cpu::KernelUse use;
#endif
};

// Returns the kernels that work() has launched, which must synchronize, in their order. On a GPU
// nobody counts them: then it returns none, and can_see_launches is false.
inline constexpr bool can_see_launches = kernels_run_on_cpu;
std::vector<SeenLaunch> launches_in(const std::function<void()>& work);

// Checks that work() has its result made by `blocks` blocks of `threads` threads, which work
// together. What comes before and behind that launch has any shape if `blocks` is more than one.
// Throws Wrong, which begins with `what`.
void check_shape(unsigned int blocks, unsigned int threads, const std::string& what,
                 const std::function<void()>& work);

// Checks that kernels do work(), which must synchronize: and not in a single thread, if this run
// asks for several. `what` begins the sentences.
void check_kernels(const std::string& what, const std::function<void()>& work);

// An array whose elements the threads of a kernel are to share among them.
struct SharedWork {
    std::string name;  // as the contract calls it
    const void* begin = nullptr;
    std::size_t elements = 0, element_bytes = 4;
    bool is_written = false;  // it is asked who writes it, and not who reads it
    // What a thread does at least: a row of so many elements, where the contract says so.
    std::size_t together = 1;
};
template <class Memory>
SharedWork read_by_all(const std::string& name, const Memory& memory, std::size_t together = 1) {
    return {name, memory.data(), memory.size(), sizeof *memory.data(), false, together};
}
template <class Memory>
SharedWork written_by_all(const std::string& name, const Memory& memory, std::size_t together = 1) {
    return {name, memory.data(), memory.size(), sizeof *memory.data(), true, together};
}

// Checks who does the work() of the answer's kernels, which must synchronize: in a launch that uses
// a quarter of such an array or more, no thread may use more than four times its share of it, and a
// quarter of the threads and half of the blocks must have some. A launch of few elements for its
// threads is not judged, nor one of a single thread. Shared memory may be read
// `shared_reads_an_element` times for each element of the first array, and not mostly by one
// thread; 0: any number of times, by whom you like. Where nobody can see it, as on a GPU, nothing
// is checked. `what` begins the sentences.
void check_shares(const std::string& what, const std::vector<SharedWork>& arrays,
                  const std::function<void()>& work, std::size_t shared_reads_an_element = 0);

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
