// The functions that the page can start: the kernels' own host functions, unchanged, with numbers
// for what the reader has chosen. Each returns the function's result as ints, the first of which
// says how many follow.
#include <numeric>

#include "02_kernels/race.hpp"
#include "02_kernels/tree.hpp"
#include "02_kernels/vector_add.hpp"

#define STARTED_BY_PAGE(name) extern "C" __attribute__((export_name(#name))) int* name

namespace {

int* answer(std::vector<int> values) {
    static std::vector<int> kept;
    kept = std::move(values);
    kept.insert(kept.begin(), static_cast<int>(kept.size()));
    return kept.data();
}

int* answer(const std::vector<ddp::ThreadPlace>& places) {
    std::vector<int> values;
    for (const ddp::ThreadPlace& place : places)
        values.insert(values.end(), {place.block, place.thread});
    return answer(values);
}

}  // namespace

// Adds 1, 2, 3, ... and 10, 20, 30, ...
STARTED_BY_PAGE(add)(unsigned int n, unsigned int, unsigned int threads) {
    std::vector<float> a(n), b(n);
    for (unsigned int i = 0; i < n; i++)
        a[i] = static_cast<float>(i + 1), b[i] = static_cast<float>(10 * (i + 1));
    const std::vector<float> sums = ddp::add_on_device(a, b, threads);
    return answer(std::vector<int>(sums.begin(), sums.end()));
}
STARTED_BY_PAGE(by_index)(unsigned int n, unsigned int blocks, unsigned int threads) {
    return answer(ddp::places_by_index(n, blocks, threads));
}
STARTED_BY_PAGE(by_grid_range)(unsigned int n, unsigned int blocks, unsigned int threads) {
    return answer(ddp::places_by_grid_range(n, blocks, threads));
}

// Adds up 1, 2, 3, ...
STARTED_BY_PAGE(tree)(int kernel, int threads) {
    std::vector<int> values(static_cast<std::size_t>(threads));
    std::iota(values.begin(), values.end(), 1);
    return answer({ddp::sum_of_block(static_cast<ddp::TreeKernel>(kernel), values).sum});
}

STARTED_BY_PAGE(race)(bool with_atomic) {
    return answer({ddp::race_of_two(with_atomic).sum});
}
STARTED_BY_PAGE(ones)(bool with_atomic, int additions) {
    return answer({ddp::sum_of_ones(additions, with_atomic)});
}
