#pragma once
// The kernels that an answer launches: how many, of which shape, and whether their threads work
// together.
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "common/gpu/gpu.hpp"

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

// An array whose elements the threads of a kernel are to write, sharing them among themselves.
struct SharedWork {
    std::string name;  // as the contract calls it
    const void* begin = nullptr;
    std::size_t elements = 0, element_bytes = 4;
};

// Checks who does the work() of the answer's kernels, which must synchronize: in a launch that
// writes a quarter of such an array or more, no thread may write more than four times its share of
// it, and a quarter of the threads and half of the blocks must have some. A launch of few elements
// for its threads is not judged, nor one of a single thread. Where nobody can see it, as on a GPU,
// nothing is checked. `what` begins the sentences.
void check_shares(const std::string& what, const std::vector<SharedWork>& arrays,
                  const std::function<void()>& work);

}  // namespace ddp::test
