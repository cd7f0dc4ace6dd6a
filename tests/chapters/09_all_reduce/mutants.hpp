#pragma once
#include "tests/chapters/support/collective_check.cuh"

namespace ddp::test {

// Returns an all-reduce whose elements are right up to rounding, but each rank adds in an order of
// its own, beginning with itself.
AllReduce<float> own_order_all_reduce(Peers& peers, std::size_t most);

}  // namespace ddp::test
