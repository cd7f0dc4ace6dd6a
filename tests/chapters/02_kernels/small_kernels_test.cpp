// The chapter's small kernels: the vector add, the looks at a stream, the race and the tree.
#include <numeric>

#include "02_kernels/race.hpp"
#include "02_kernels/streams.hpp"
#include "02_kernels/tree.hpp"
#include "02_kernels/vector_add.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"
#include "tests/support/text.hpp"

namespace ddp::test {

TEST_CASE("vector add: every element once, however many the last block has") {
    for (const unsigned int threads : {1u, 4u, 256u})
        for (const std::size_t n : {1u, 3u, 4u, 5u, 1'009u}) {
            std::vector<float> a(n), b(n);
            for (std::size_t i = 0; i < n; i++) {
                a[i] = static_cast<float>(i);
                b[i] = static_cast<float>(1000 * i + 1);
            }
            const std::vector<float> sums = add_on_device(a, b, threads);
            for (std::size_t i = 0; i < n; i++)
                REQUIRE(sums[i] == a[i] + b[i]);
        }
}

TEST_CASE("vector add: who computes what") {
    const std::vector<ThreadPlace> places = places_by_index(10, 3, 4);
    for (int i = 0; i < 10; i++) {
        REQUIRE(places[static_cast<std::size_t>(i)].block == i / 4);
        REQUIRE(places[static_cast<std::size_t>(i)].thread == i % 4);
    }
    // Too few threads: the index formula leaves elements out, grid_range does not.
    REQUIRE(places_by_index(10, 2, 4)[8].block == -1);
    const std::vector<ThreadPlace> shares = places_by_grid_range(10, 2, 2);
    for (int i = 0; i < 10; i++) {
        const ThreadPlace place = shares[static_cast<std::size_t>(i)];
        const int thread = 2 * place.block + place.thread;
        if (kernels_run_on_cpu)
            REQUIRE((10 * thread / 4 <= i && i < 10 * (thread + 1) / 4));
        else
            REQUIRE(thread == i % 4);
    }
}

TEST_CASE("streams: at once nothing is there, after the event the first result, then both") {
    bool was_too_early = false, was_between = false;
    // Enough for a round to take longer than the launches of two.
    constexpr std::size_t elements = kernels_run_on_cpu ? 1 << 22 : 1 << 28;
    // Where others keep the host from running, it may be late enough for once.
    for (int i = 0; i < (kernels_run_on_cpu ? 50 : 5) && !(was_too_early && was_between); i++) {
        const ThreeLooks looks = look_three_times(elements);
        REQUIRE((looks.at_once.first == 0 || looks.at_once.first == 2));
        REQUIRE(looks.after_event.first == 2);
        REQUIRE((looks.after_event.second == 0 || looks.after_event.second == 4));
        REQUIRE(looks.after_synchronize.first == 2);
        REQUIRE(looks.after_synchronize.second == 4);
        was_too_early |= looks.at_once.first == 0 && looks.at_once.second == 0;
        was_between |= looks.after_event.second == 0;
    }
    REQUIRE(was_too_early);
    REQUIRE(was_between);
}

TEST_CASE("streams where a page is guarded", "[.child]") {
    look_three_times(1 << 22);
}

TEST_CASE("streams: strict mode names the copy whose result is read too early") {
    if (!kernels_run_on_cpu)
        return;
    const ChildResult child = run_child("streams where a page is guarded", {"CUDA_ON_CPU=strict"});
    REQUIRE((child.signal != 0 || child.exit_code != 0));
    REQUIRE(has(child.output, "02_kernels/streams.cu"));
    REQUIRE(has(child.output, "before it synchronised with the stream"));
}

TEST_CASE("race: one of two additions is lost without an atomic, and none with it") {
    const Race lost = race_of_two(false), right = race_of_two(true);
    REQUIRE((lost.sum == 1 || lost.sum == 2));
    REQUIRE(lost.accesses.size() == 4);
    REQUIRE(!lost.accesses[0].is_write);
    REQUIRE(!lost.accesses[1].is_write);
    REQUIRE(lost.accesses[1].value == 0);
    // The last one to write decides: thread 0 adds 1, thread 1 adds 2.
    REQUIRE((!kernels_run_on_cpu || lost.sum == lost.accesses[3].thread + 1));
    REQUIRE(right.sum == 3);
    REQUIRE(right.accesses.back().value == 3);
}

TEST_CASE("race: two threads at the same time lose additions unless they are atomic") {
    REQUIRE(sum_of_ones(100'000, true) == 200'000);
    bool was_lost = false;
    // On one core, or on a busy machine, one of the two may be done before the other begins.
    for (int i = 0; i < 200 && !was_lost; i++) {
        const int sum = sum_of_ones(1'000'000, false);
        REQUIRE(sum > 0);
        REQUIRE(sum <= 2'000'000);
        was_lost = sum < 2'000'000;
    }
    REQUIRE(was_lost);
}

TEST_CASE("tree: each step is what the picture says") {
    const TreeSteps steps = sum_of_block(TreeKernel::sequential, {1, 2, 3, 4, 5, 6, 7, 8});
    REQUIRE(steps.sum == 36);
    const std::vector<std::vector<int>> added{{}, {6, 8, 10, 12}, {16, 20}, {36}};
    for (std::size_t step = 1; step < 4; step++)
        for (std::size_t thread = 0; thread < 8; thread++) {
            const TreeCell cell = steps.cells[step][thread];
            REQUIRE(cell.has_added == (thread < added[step].size()));
            if (cell.has_added)
                REQUIRE(cell.value == added[step][thread]);
        }
}

TEST_CASE("tree: both orders add up a block of any size") {
    for (std::size_t threads = 1; threads <= 1024; threads *= 2) {
        std::vector<int> values(threads);
        std::iota(values.begin(), values.end(), 1);
        const int right = std::accumulate(values.begin(), values.end(), 0);
        for (const TreeKernel order : {TreeKernel::interleaved, TreeKernel::sequential}) {
            const TreeSteps steps = sum_of_block(order, values);
            REQUIRE(steps.sum == right);
            for (std::size_t step = 1; step < steps.cells.size(); step++)
                for (std::size_t thread = 0; thread < threads; thread++) {
                    const std::size_t distance = std::size_t{1} << step;
                    const bool is_busy = order == TreeKernel::interleaved
                                             ? thread % distance == 0
                                             : thread < threads / distance;
                    REQUIRE(steps.cells[step][thread].has_added == is_busy);
                }
        }
    }
}

}  // namespace ddp::test
