// The functions that the page can start: the kernels' own host functions, unchanged, with numbers
// for what the reader has chosen. Each returns the sum.
#include <numeric>

#include "02_kernels/race.hpp"
#include "02_kernels/tree.hpp"

#define STARTED_BY_PAGE(name) extern "C" __attribute__((export_name(#name))) int name

// Adds up 1, 2, 3, ...
STARTED_BY_PAGE(tree)(int kernel, int threads) {
    std::vector<int> values(static_cast<std::size_t>(threads));
    std::iota(values.begin(), values.end(), 1);
    return ddp::sum_of_block(static_cast<ddp::TreeKernel>(kernel), values).sum;
}
STARTED_BY_PAGE(race)(bool with_atomic) {
    return ddp::race_of_two(with_atomic).sum;
}
STARTED_BY_PAGE(ones)(bool with_atomic, int additions) {
    return ddp::sum_of_ones(additions, with_atomic);
}
