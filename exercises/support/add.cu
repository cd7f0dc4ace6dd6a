#include "exercises/09_all_reduce/ring_by_hand.hpp"

namespace ddp {
namespace {

__global__ void add_kernel(float* to, const float* from, std::size_t count) {
    for (std::size_t i : grid_range(count))
        to[i] += from[i];
}

}  // namespace

void add(float* to, const float* from, std::size_t count, Stream& stream) {
    launch(stream, grid_for(count), add_kernel, to, from, count);
}

}  // namespace ddp
