// Work of a pass in blocks of B threads, which are B / 32 warps:
//
//     version        warp additions                                waits of a block's threads
//     atomics        one for each element                          0
//     interleaved    busy warps in each of log2(B) steps           B (1 + log2 B)    barriers
//     sequential     n / 32, then ceil(half / 32) in each step     B (1 + log2 B)    barriers
//     warps          n / 32, then 5 for each warp, then 5          B (1 + 5) + 32 x 5
//     accumulators   a thread's share + 31, then as `warps`        as `warps`
//
// The 1 of `warps` is a barrier, and the rest are shuffles. A thread of `accumulators` has 32 sums,
// or 16 in blocks of 1024.
#include "02_kernels/block_reduce.hpp"

#include <algorithm>
#include <bit>

namespace ddp {
namespace {

constexpr std::size_t lanes_of_warp = 32, shuffles_of_warp = 5;  // 16, 8, 4, 2, 1

// Returns n / 32, rounded up.
std::size_t warps_for(std::size_t n) {
    return (n + lanes_of_warp - 1) / lanes_of_warp;
}

// Returns how many warps have a busy lane, added up over the steps of a tree of `block` threads.
std::size_t busy_warps(ReduceVersion version, std::size_t block) {
    std::size_t all = 0;
    for (std::size_t busy = block / 2; busy > 0; busy /= 2)
        // The busy threads stand side by side, or as far apart as they can.
        all += version == ReduceVersion::sequential ? warps_for(busy)
                                                    : std::min(busy, warps_for(block));
    return all;
}

// Returns the additions of all warps before the tree of `accumulators`: for each warp, those of the
// lane with the largest share, and those that make its sums one.
std::size_t share_additions(std::size_t threads, std::size_t n, std::size_t sums) {
    std::size_t all = 0;
    for (std::size_t first = 0; first < threads; first += lanes_of_warp) {
        std::size_t largest = 0;
        for (std::size_t thread = first; thread < first + lanes_of_warp; thread++)
            largest = std::max(largest, kernels_run_on_cpu
                                            ? n * (thread + 1) / threads - n * thread / threads
                                            : (n + threads - 1 - thread) / threads);
        all += largest + sums - 1;
    }
    return all;
}

void add_pass(ReduceWork& work, const BlockReduce& config, std::size_t n) {
    const std::size_t block = config.block, blocks = blocks_of(config, n);
    const std::size_t steps = static_cast<std::size_t>(std::countr_zero(block));
    const bool is_tree_in_memory =
        config.version == ReduceVersion::interleaved || config.version == ReduceVersion::sequential;
    const std::size_t barriers = is_tree_in_memory ? 1 + steps : 1;
    work.barriers_in_a_row += barriers;
    work.waits += blocks * block * barriers;
    if (config.version == ReduceVersion::sequential || config.version == ReduceVersion::warps)
        work.warp_additions += warps_for(n);  // eight elements of each thread
    if (config.version == ReduceVersion::accumulators)
        work.warp_additions += share_additions(blocks * block, n, sums_of_thread(config));
    if (is_tree_in_memory) {
        work.warp_additions += blocks * busy_warps(config.version, block);
    } else {  // every warp shuffles, and then the first one again
        work.warp_additions += blocks * (warps_for(block) + 1) * shuffles_of_warp;
        work.waits += blocks * (block + lanes_of_warp) * shuffles_of_warp;
    }
}

}  // namespace

ReduceWork work_of(const BlockReduce& config, std::size_t n) {
    if (config.version == ReduceVersion::atomics)
        return {n, 0, n, 0};
    ReduceWork work{steps_of(config, n), 0, 0, 0};
    for (;; n = blocks_of(config, n)) {
        add_pass(work, config, n);
        if (blocks_of(config, n) == 1)
            return work;
    }
}

}  // namespace ddp
