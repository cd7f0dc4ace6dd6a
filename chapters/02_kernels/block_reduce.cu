// Passes: a kernel turns n elements into one value per block, and the values are reduced by the
// same kernel again until one is left. A million elements, `sequential`, blocks of 256 threads
// (2048 elements each):
//
//     values     1,000,000 elements    ...........................................
//                                      \____/\____/\____/      \____/      pass 1: 489 blocks
//     scratch    489 elements             .     .     .    ...    .
//                                         \_______________________/        pass 2: 1 block
//     result     1 element                            .
//
//     version        elements per block       passes for a million elements, B = 256
//     atomics        all blocks share n       1 (all threads add to the one result)
//     interleaved    B                        3
//     sequential     8 B                      2
//     warps          8 B                      2
//     accumulators   n / blocks               2 on a GPU; 1 on a CPU, which uses a single block
#include "02_kernels/block_reduce.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "02_kernels/block_reduce.cuh"

namespace ddp {
namespace {

constexpr unsigned int least_block = 32, max_block = 1024;
// The largest grid of `atomics` and `accumulators`, whose threads take shares of any size: enough
// blocks to keep a GPU busy. On a CPU blocks run one after the other, so one is enough.
constexpr std::size_t max_grid_blocks = kernels_run_on_cpu ? 1 : 1024;

// Returns a / b, rounded up.
std::size_t divided_up(std::size_t a, std::size_t b) {
    return (a + b - 1) / b;
}

// Returns the steps of a tree over so many values.
std::size_t log2_of(unsigned int power_of_two) {
    return static_cast<std::size_t>(std::countr_zero(power_of_two));
}

// The versions, but for their kernels, in the order of ReduceVersion.
struct VersionTraits {
    const char* name;
    std::size_t elements;  // that a thread reads in a pass
    bool takes_any_share;  // its threads take more if there are more: the grid need not grow
    bool by_warps;         // its tree is one of each warp, and then one of all warps
};
constexpr VersionTraits traits_of_versions[] = {
    {"atomics", 1, true, false},
    {"interleaved", 1, false, false},
    {"sequential", elements_per_thread, false, false},
    {"warps", elements_per_thread, false, true},
    {"accumulators", 0, true, true},  // elements: sums_of_thread, as a block's size decides
};

const VersionTraits& traits_of(ReduceVersion version) {
    return traits_of_versions[static_cast<std::size_t>(version)];
}
// Returns the elements that a thread reads in a pass, or at least reads.
std::size_t elements_of_thread(const BlockReduce& config) {
    return config.version == ReduceVersion::accumulators ? sums_of_thread(config)
                                                         : traits_of(config.version).elements;
}

// Returns the longest chain of additions within a pass: those of a thread, then those of the tree.
std::size_t steps_of_pass(const BlockReduce& config, std::size_t n) {
    const std::size_t tree =
        traits_of(config.version).by_warps ? 2 * log2_of(32) : log2_of(config.block);
    if (config.version == ReduceVersion::accumulators) {
        // One addition per sum for each element of a thread's share; then the sums become one.
        const std::size_t share = divided_up(n, blocks_of(config, n) * config.block);
        return divided_up(share, sums_of_thread(config)) + log2_of(sums_of_thread(config)) + tree;
    }
    const std::size_t elements = elements_of_thread(config);
    return (elements > 1 ? elements : 0) + tree;
}

// Enqueues both kernels of `atomics`: the first writes the neutral element, the second adds to it.
template <ReduceOp op, class T>
void enqueue_atomics(const LaunchShape& shape, std::size_t n, const T* values, T* result,
                     Stream& stream) {
    if constexpr (has_atomic<op, T>) {
        launch(stream, {1, 1}, begin_atomics<op, T>, result);
        launch(stream, shape, reduce_by_atomics<op, T>, n, values, result);
    } else {
        throw std::invalid_argument("CUDA has no atomic " + name_of(op) +
                                    " of this type: use another version than " +
                                    name_of(ReduceVersion::atomics) + ".");
    }
}

// Enqueues one pass: n `values` become blocks_of(config, n) `results`.
template <ReduceOp op, class T>
void enqueue_pass(const BlockReduce& config, std::size_t n, const T* values, T* results,
                  Stream& stream) {
    const LaunchShape shape(dim3(static_cast<unsigned int>(blocks_of(config, n))),
                            dim3(config.block));
    // The trees in shared memory have a place there for every thread.
    LaunchShape tree = shape;
    tree.shared_bytes = config.block * sizeof(T);
    switch (config.version) {
        case ReduceVersion::atomics:
            return enqueue_atomics<op>(shape, n, values, results, stream);
        case ReduceVersion::interleaved:
            return launch(stream, tree, reduce_interleaved<op, T>, n, values, results);
        case ReduceVersion::sequential:
            return launch(stream, tree, reduce_sequential<op, T>, n, values, results);
        case ReduceVersion::warps:
            return launch(stream, shape, reduce_by_warps<op, T>, n, values, results);
        case ReduceVersion::accumulators:
            // Two kernels: a block of more than 512 threads must do with fewer registers a thread.
            if (config.block > 512)
                return launch(stream, shape, reduce_by_lanes<op, T, 1024>, n, values, results);
            return launch(stream, shape, reduce_by_lanes<op, T, 512>, n, values, results);
    }
}

}  // namespace

std::string name_of(ReduceVersion version) {
    return traits_of(version).name;
}

std::size_t blocks_of(const BlockReduce& config, std::size_t n) {
    if (!std::has_single_bit(config.block) || config.block < least_block ||
        config.block > max_block)
        throw std::invalid_argument("A block that reduces needs a power of two of threads from " +
                                    std::to_string(least_block) + " to " +
                                    std::to_string(max_block) + ", not " +
                                    std::to_string(config.block) + ".");
    // At least one block, even for n = 0: it writes the neutral element.
    const std::size_t most =
        traits_of(config.version).takes_any_share ? max_grid_blocks : ~std::size_t{0};
    return std::clamp<std::size_t>(divided_up(n, config.block * elements_of_thread(config)), 1,
                                   most);
}

unsigned int sums_of_thread(const BlockReduce& config) {
    return config.block > 512 ? sums_per_thread<float, 1024> : sums_per_thread<float, 512>;
}

std::size_t scratch_elements(const BlockReduce& config, std::size_t n) {
    std::size_t elements = 0;
    if (config.version == ReduceVersion::atomics)
        return elements;
    // The values of every pass but the last, pass after pass.
    for (std::size_t left = blocks_of(config, n); left > 1; left = blocks_of(config, left))
        elements += left;
    return elements;
}

std::size_t steps_of(const BlockReduce& config, std::size_t n) {
    if (config.version == ReduceVersion::atomics)
        return n;
    std::size_t all = steps_of_pass(config, n);
    for (std::size_t left = blocks_of(config, n); left > 1; left = blocks_of(config, left))
        all += steps_of_pass(config, left);
    return all;
}

template <ReduceOp op, class T>
void block_reduce(const BlockReduce& config, std::size_t n, const T* values, T* result, T* scratch,
                  Stream& stream) {
    if (config.version == ReduceVersion::atomics)
        return enqueue_pass<op>(config, n, values, result, stream);
    // Passes into scratch, each of which reads what the one before it wrote there ...
    for (std::size_t left = blocks_of(config, n); left > 1; left = blocks_of(config, n)) {
        enqueue_pass<op>(config, n, values, scratch, stream);
        values = scratch;
        scratch += left;
        n = left;
    }
    // ... until one block is enough: its value is the result.
    enqueue_pass<op>(config, n, values, result, stream);
}

// The kernels are compiled here, for these operations and types.
#define DDP_REDUCES(op, T) \
    template void block_reduce<op, T>(const BlockReduce&, std::size_t, const T*, T*, T*, Stream&);
DDP_REDUCES(ReduceOp::sum, float)
DDP_REDUCES(ReduceOp::maximum, float)
DDP_REDUCES(ReduceOp::minimum, float)
DDP_REDUCES(ReduceOp::sum, double)
DDP_REDUCES(ReduceOp::maximum, double)
DDP_REDUCES(ReduceOp::minimum, double)
DDP_REDUCES(ReduceOp::sum, int)
DDP_REDUCES(ReduceOp::maximum, int)
DDP_REDUCES(ReduceOp::minimum, int)

}  // namespace ddp
