#pragma once
#include <atomic>

namespace cuda_on_cpu {

// Notes a fence of the explored stream that runs on this thread, or is one if there is none.
void explored_fence(std::memory_order order);

}  // namespace cuda_on_cpu
