// The exercise scan: whole numbers, whose sums are exact, so the first wrong one shows the mistake.
#include <algorithm>
#include <cmath>

#include "exercises/02_kernels/scan.hpp"
#include "exercises/support/launches.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr int unused = -1;

// One call. `blocks` 0: starts_by_one_block.
struct Case {
    int n, blocks, block;

    std::string text() const {
        return std::to_string(n) + " numbers, " + std::to_string(std::max(blocks, 1)) +
               " blocks of " + std::to_string(block) + " threads: ";
    }
};

// Different from place to place, and 0 now and then.
std::vector<int> counts_for(int n) {
    std::vector<int> counts;
    for (int i = 0; i < n; i++)
        counts.push_back(i * 7 % 11 + i / 64 % 3);
    return counts;
}

// Returns what the reader's function writes.
std::vector<int> starts_of(const Case& asked, const std::vector<int>& numbers) {
    Stream stream;
    const Buffer<int> counts(numbers);
    Buffer<int> starts(std::vector<int>(numbers.size(), unused));
    Buffer<int> scratch(std::vector<int>(static_cast<std::size_t>(asked.blocks), unused));
    if (asked.blocks == 0)
        starts_by_one_block(counts.data(), asked.n, asked.block, starts.data(), stream);
    else
        starts_by_many_blocks(counts.data(), asked.n, asked.blocks, asked.block, scratch.data(),
                              starts.data(), stream);
    stream.synchronize();
    return starts.to_host_now();
}

void check_starts(const Case& asked, const std::string& hint) {
    const std::vector<int> counts = counts_for(asked.n);
    trying(asked.text() + hint);
    const std::vector<int> yours = starts_of(asked, counts);
    int right = 0;
    for (std::size_t i = 0; i < counts.size(); right += counts[i], i++)
        if (yours[i] != right)
            throw Wrong(asked.text() + "starts[" + std::to_string(i) + "] is " +
                        std::to_string(yours[i]) + ", right is " + std::to_string(right) + ".\n" +
                        (yours[i] == unused ? "No thread has written to it. " : "") +
                        (yours[i] == right + counts[i] ? "That includes counts[i] itself." : hint));
}

// Checks that the blocks and threads of the contract do the work together.
void check_work(const Case& asked) {
    check_shape(static_cast<unsigned int>(std::max(asked.blocks, 1)),
                static_cast<unsigned int>(asked.block), asked.text(),
                [&] { starts_of(asked, counts_for(asked.n)); });
}

void check_one_block() {
    check_starts({1, 0, 32}, "No count comes before the first one.");
    check_starts({64, 0, 64},
                 "After the step with distance d = 1, 2, 4, ... a sum covers 2 d "
                 "counts.");
    check_starts(
        {640, 0, 64},
        "There are more counts than threads: each round begins with the sum of all earlier "
        "rounds. (Or does a thread go on before the others have read or written their "
        "sums? A step has two __syncthreads().)");
    for (const int block : {1, 3, 100, 1000})
        check_starts({1009, 0, block}, "The number of threads is not a power of two.");
    check_starts({0, 0, 32}, "There are no counts.");
    check_work({1009, 0, 100});
}

void check_many_blocks() {
    check_starts({256, 4, 64}, "The chunk of block 1 begins with the sum of block 0's.");
    check_starts({5'003, 7, 96}, "The counts do not divide evenly among the blocks.");
    check_starts({3, 8, 32}, "Most blocks have nothing to do here.");
    check_starts({3'000, 130, 32}, "There are more blocks than threads in a block.");
    check_starts({0, 4, 32}, "There are no counts.");
    check_work({5'003, 7, 100});
}

// ---- Task compact

void check_compact(const std::vector<float>& values, float threshold, const std::string& hint) {
    std::vector<int> right;
    for (std::size_t i = 0; i < values.size(); i++)
        if (std::abs(values[i]) >= threshold)
            right.push_back(static_cast<int>(i));

    Stream stream;
    constexpr int blocks = 7, block = 96;
    const std::size_t n = values.size();
    const Buffer<float> input(values);
    Buffer<float> kept(std::vector<float>(n, static_cast<float>(unused)));
    Buffer<int> places(std::vector<int>(n, unused)), count(std::vector<int>{unused});
    Buffer<int> scratch(std::vector<int>(2 * n + blocks, unused));
    compact(input.data(), static_cast<int>(n), threshold, blocks, block, scratch.data(),
            {kept.data(), places.data(), count.data()}, stream);
    stream.synchronize();

    const int yours = count.to_host_now()[0];
    if (yours != static_cast<int>(right.size()))
        throw Wrong("You keep " + std::to_string(yours) + " of " + std::to_string(n) +
                    " values, right are " + std::to_string(right.size()) + ".\n" + hint);
    const std::vector<float> kept_values = kept.to_host_now();
    std::vector<int> kept_places = places.to_host_now();
    kept_places.resize(right.size());
    if (kept_places != right && std::ranges::is_permutation(kept_places, right))
        throw Wrong(
            "The right values are kept, but not in the order of their places.\nDo you take "
            "the next free place by an atomic? The sum before a value says where it goes.");
    for (std::size_t k = 0; k < right.size(); k++)
        if (kept_places[k] != right[k] ||
            kept_values[k] != values[static_cast<std::size_t>(right[k])])
            throw Wrong("places[" + std::to_string(k) + "] is " + std::to_string(kept_places[k]) +
                        ", with the value " + std::to_string(kept_values[k]) + "; right is " +
                        std::to_string(right[k]) + ".\n" + hint);
}

void check_compact_task() {
    std::vector<float> values;
    for (int i = 0; i < 2'021; i++)
        values.push_back(static_cast<float>(i * 37 % 101 - 50) / 8);
    check_compact({0.5f, 2}, 1, "The last value is kept, and it counts as well.");
    check_compact({2, 0.5f}, 1, "The last value is not kept, and does not count.");
    check_compact({1, -1, 2, 0.5f}, 1, "The threshold is 1, and |-1| is not below it.");
    check_compact(values, 1000, "No value is large enough: the count is 0.");
    check_compact(values, 5, "A kept value's place is the number of values kept before it.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"prefix_sums", check_one_block},
            {"over_blocks", check_many_blocks},
            {"compact", check_compact_task}};
}

}  // namespace ddp::test
