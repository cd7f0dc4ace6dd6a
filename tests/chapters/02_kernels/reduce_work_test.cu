// The work of a reduction, as reduce_work.hpp computes it and as the chapter's own kernels do it:
// they run here with a type that counts its additions, and with barriers and shuffles that count.
#include "02_kernels/block_reduce.hpp"

#include <algorithm>
#include <map>

#include "common/gpu/gpu.hpp"
#include "tests/support/catch.hpp"

#if !defined(DDP_CUDA)

namespace ddp::test {

// What one thread has done.
struct ThreadWork {
    std::size_t additions = 0, barriers = 0, waits = 0;
};
// [block, thread]. A stream's thread writes it; the host reads it when it has synchronised.
static std::map<std::pair<unsigned int, unsigned int>, ThreadWork> counted;

static ThreadWork& mine() {
    return counted[{blockIdx.x, threadIdx.x}];
}

struct CountedFloat {
    float value;
    friend CountedFloat operator+(CountedFloat a, CountedFloat b) {
        mine().additions++;
        return {a.value + b.value};
    }
};

static void counted_barrier() {
    mine().barriers++;
    mine().waits++;
    __syncthreads();
}
template <class T>
T counted_shuffle(unsigned int mask, T value, unsigned int distance) {
    mine().waits++;
    return __shfl_down_sync(mask, value, distance);
}

}  // namespace ddp::test

// From here on the chapter's kernels call the functions that count.
#define __syncthreads() ::ddp::test::counted_barrier()
#define __shfl_down_sync(mask, value, distance) ::ddp::test::counted_shuffle(mask, value, distance)
#include "02_kernels/block_reduce.cuh"
#undef __syncthreads
#undef __shfl_down_sync

namespace ddp::test {

// Adds what the threads of a pass have done to `work`.
static void add_counted(ReduceWork& work) {
    std::map<std::pair<unsigned int, unsigned int>, std::size_t> of_warp;
    std::size_t barriers = 0;
    for (const auto& [place, thread] : counted) {
        std::size_t& most = of_warp[{place.first, place.second / 32}];
        most = std::max(most, thread.additions);
        barriers = std::max(barriers, thread.barriers);
        work.waits += thread.waits;
    }
    for (const auto& [warp, additions] : of_warp)
        work.warp_additions += additions;
    work.barriers_in_a_row += barriers;
}

static ReduceWork counted_work(const BlockReduce& config, std::size_t n) {
    Stream stream;
    Buffer<CountedFloat> values(std::vector<CountedFloat>(n, {1}));
    ReduceWork work{steps_of(config, n), 0, 0, 0};
    for (;;) {
        const std::size_t blocks = blocks_of(config, n);
        Buffer<CountedFloat> results(blocks);
        const LaunchShape shape(dim3(static_cast<unsigned int>(blocks)), dim3(config.block),
                                config.block * sizeof(CountedFloat));
        auto* kernel = config.version == ReduceVersion::interleaved
                           ? reduce_interleaved<ReduceOp::sum, CountedFloat>
                       : config.version == ReduceVersion::sequential
                           ? reduce_sequential<ReduceOp::sum, CountedFloat>
                       : config.version == ReduceVersion::warps
                           ? reduce_by_warps<ReduceOp::sum, CountedFloat>
                       : config.block > 512 ? reduce_by_lanes<ReduceOp::sum, CountedFloat, 1024>
                                            : reduce_by_lanes<ReduceOp::sum, CountedFloat, 512>;
        counted.clear();
        launch(stream, shape, kernel, n, values.data(), results.data());
        stream.synchronize();
        add_counted(work);
        if (blocks == 1) {
            REQUIRE(results.to_host_now()[0].value > 0);
            return work;
        }
        values = std::move(results);
        n = blocks;
    }
}

TEST_CASE("reduce_work: the formulas are what the kernels do") {
    using enum ReduceVersion;
    for (const ReduceVersion version : {interleaved, sequential, warps, accumulators})
        for (const unsigned int block : {32u, 64u, 256u, 1024u})
            for (const std::size_t n : {1u, 32u, 33u, 1'009u, 2'048u, 10'000u}) {
                CAPTURE(name_of(version), block, n);
                const ReduceWork promised = work_of({version, block}, n);
                const ReduceWork seen = counted_work({version, block}, n);
                REQUIRE(promised.barriers_in_a_row == seen.barriers_in_a_row);
                REQUIRE(promised.waits == seen.waits);
                REQUIRE(promised.warp_additions == seen.warp_additions);
            }
}

}  // namespace ddp::test

#endif

namespace ddp::test {

TEST_CASE("reduce_work: each version makes the work less that it is there to make less") {
    using enum ReduceVersion;
    const std::size_t n = 1 << 20;
    const ReduceWork one_place = work_of({atomics, 256}, n),
                     neighbours = work_of({interleaved, 256}, n),
                     halves = work_of({sequential, 256}, n), by_warps = work_of({warps, 256}, n),
                     by_accumulators = work_of({accumulators, 256}, n);
    REQUIRE(one_place.additions_in_a_row == n);
    REQUIRE(one_place.warp_additions == n);
    REQUIRE(neighbours.additions_in_a_row == 24);
    REQUIRE(halves.warp_additions * 4 < neighbours.warp_additions);
    REQUIRE(halves.waits * 8 <= neighbours.waits);
    REQUIRE(by_warps.barriers_in_a_row == 2);
    REQUIRE(by_accumulators.waits < by_warps.waits);
    // In a block of 256 threads: eight warps in each of five steps, then 4, 2 and 1.
    REQUIRE(work_of({interleaved, 256}, 256).warp_additions == 5 * 8 + 4 + 2 + 1);
    REQUIRE(work_of({sequential, 256}, 256).warp_additions == 8 + 4 + 2 + 1 + 1 + 1 + 1 + 1 + 1);
}

}  // namespace ddp::test
