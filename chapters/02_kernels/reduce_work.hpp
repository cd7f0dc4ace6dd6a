#pragma once
// The work of a block reduction, counted without running it. Where times depend on the device,
// these numbers do not (but for `accumulators`, whose grid is another one on a CPU).
#include <cstddef>

#include "02_kernels/block_reduce.hpp"

namespace ddp {

struct ReduceWork {
    std::size_t additions_in_a_row;  // that wait for each other: steps_of()
    std::size_t barriers_in_a_row;   // that a block meets, over all passes
    // Additions that a warp executes, over all warps. It takes as long with one busy lane as with
    // 32. Atomics count one by one, since the place that they change serves one at a time.
    std::size_t warp_additions;
    // Waits of threads for others, at a barrier or for their warp, added up over all threads. On
    // a CPU each of them costs two switches between threads.
    std::size_t waits;
};

// Returns the work of block_reduce<ReduceOp::sum>(how, n, ...).
ReduceWork work_of(const BlockReduce& how, std::size_t n);

}  // namespace ddp
