// The exercise bfloat16_gradients: sums of many small numbers. Read
// exercises/04_gradient_accumulation/README.md first.
#include "exercises/04_gradient_accumulation/bfloat16_gradients.hpp"

#include <algorithm>
#include <cmath>

namespace ddp {
namespace {

// stub
//: Your kernels go here. grid_range(n) distributes the elements over the threads;
//: __bfloat162float(x) and __float2bfloat16(x) convert.
__global__ void add_to_floats(std::size_t n, const __nv_bfloat16* gradients, float scale,
                              bool accumulate, float* sums) {
    for (std::size_t i : grid_range(n)) {
        const float contribution = scale * __bfloat162float(gradients[i]);
        sums[i] = accumulate ? sums[i] + contribution : contribution;
    }
}

__global__ void add_to_parts(std::size_t n, const __nv_bfloat16* gradients, float scale,
                             bool accumulate, __nv_bfloat16* sums, __nv_bfloat16* lost) {
    for (std::size_t i : grid_range(n)) {
        float sum = scale * __bfloat162float(gradients[i]);
        if (accumulate)
            sum += __bfloat162float(sums[i]) + __bfloat162float(lost[i]);
        sums[i] = __float2bfloat16(sum);
        lost[i] = __float2bfloat16(sum - __bfloat162float(sums[i]));
    }
}
// end stub

}  // namespace

void accumulate_in_float(std::size_t n, const __nv_bfloat16* gradients, float scale,
                         bool accumulate, float* sums, Stream& stream) {
    // stub: into_float
    //: launch(stream, grid_for(n), kernel, arguments...);
    launch(stream, grid_for(n), add_to_floats, n, gradients, scale, accumulate, sums);
    // end stub
}

double share_that_arrives(int fraction_bits, std::size_t micro_batches) {
    // stub: standstill
    //: At which sum does adding 1 no longer change anything?
    const double standstill = std::ldexp(1.0, fraction_bits + 1);
    return std::min(1.0, standstill / static_cast<double>(micro_batches));
    // end stub
}

void accumulate_in_two_parts(std::size_t n, const __nv_bfloat16* gradients, float scale,
                             bool accumulate, __nv_bfloat16* sums, __nv_bfloat16* lost,
                             Stream& stream) {
    // stub: two_parts
    //: The kernel may use floats, but none remains in memory between two calls.
    launch(stream, grid_for(n), add_to_parts, n, gradients, scale, accumulate, sums, lost);
    // end stub
}

}  // namespace ddp
