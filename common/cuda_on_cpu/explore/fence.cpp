// The function that kernels call for a fence when they are compiled with -fsanitize=thread
// (fence.hpp). Alone in its file, since for others fence.hpp defines it.
#include <atomic>

#include "fences.hpp"

namespace cuda_on_cpu {

void fence(std::memory_order order);

void fence(std::memory_order order) {
    explored_fence(order);
}

}  // namespace cuda_on_cpu
