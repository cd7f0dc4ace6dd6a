#pragma once
// The launches of a program with the explorer, which wait to be explored.
#include <memory>
#include <vector>

#include "cuda_on_cpu/runtime_api.hpp"
#include "stream.hpp"

namespace cuda_on_cpu {

struct DeleteLaunch {
    void operator()(PreparedKernel* kernel) const;
};
using Launch = std::unique_ptr<PreparedKernel, DeleteLaunch>;

// Returns what was launched on the stream, in this order, and forgets it.
std::vector<Launch> take_launches(const Stream& stream);
// Forgets all launches that were not taken, and returns how many there were.
std::size_t forget_launches();

}  // namespace cuda_on_cpu
