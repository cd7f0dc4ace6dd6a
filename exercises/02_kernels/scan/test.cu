// The exercise scan: whole numbers, whose sums are exact, so the first wrong one shows the mistake;
// and who does the work: the blocks and threads of the contract, while the host goes on.
#include <algorithm>
#include <cmath>

#include "exercises/02_kernels/scan.hpp"
#include "exercises/support/launches.hpp"
#include "exercises/support/tasks.hpp"

namespace ddp::test {
namespace {

constexpr int unused = -1;

// Different from place to place, and 0 now and then.
std::vector<int> counts_for(int n) {
    std::vector<int> counts;
    for (int i = 0; i < n; i++)
        counts.push_back(i * 7 % 11 + i / 64 % 3);
    return counts;
}

std::string shape(int blocks, int block) {
    return (blocks == 0 ? "one block of "
                        : std::to_string(blocks) + (blocks == 1 ? " block of " : " blocks of ")) +
           std::to_string(block) + (block == 1 ? " thread" : " threads");
}

void compare_starts(const std::string& what, const std::vector<int>& counts,
                    const std::vector<int>& starts, const std::string& hint) {
    int right = 0;
    for (std::size_t i = 0; i < counts.size(); right += counts[i], i++) {
        if (starts[i] == right)
            continue;
        const bool is_inclusive = starts[i] == right + counts[i];
        throw Wrong(what + ": starts[" + std::to_string(i) + "] is " + std::to_string(starts[i]) +
                    ", right is " + std::to_string(right) + ".\n" +
                    (starts[i] == unused ? "No thread has written to it. " : "") +
                    (is_inclusive
                         ? "That sum includes counts[" + std::to_string(i) + "]: it should not."
                         : hint));
    }
}

// The memory of one call. `blocks` 0: starts_by_one_block.
struct OneCall {
    OneCall(const std::vector<int>& numbers, int blocks, int block)
        : blocks(blocks),
          block(block),
          counts(numbers),
          starts(std::vector<int>(numbers.size(), unused)),
          scratch(std::vector<int>(static_cast<std::size_t>(blocks), unused)) {}

    void enqueue() {
        const int n = static_cast<int>(counts.size());
        if (blocks == 0)
            starts_by_one_block(counts.data(), n, block, starts.data(), stream);
        else
            starts_by_many_blocks(counts.data(), n, blocks, block, scratch.data(), starts.data(),
                                  stream);
    }

    const int blocks, block;
    Stream stream;
    Buffer<int> counts, starts, scratch;
};

void check_starts(int n, int blocks, int block, const std::string& hint) {
    const std::vector<int> counts = counts_for(n);
    const std::string what = std::to_string(n) + " counts, " + shape(blocks, block);
    OneCall call(counts, blocks, block);
    trying(what + ": " + hint);
    call.enqueue();
    call.stream.synchronize();
    trying("");
    compare_starts(what, counts, call.starts.to_host_now(), hint);
    held();
}

// Checks who has done the work.
void check_work(int n, int blocks, int block) {
    const std::vector<int> counts = counts_for(n);
    const std::string what = std::to_string(n) + " counts";
    OneCall call(counts, blocks, block);
    check_shape(static_cast<unsigned int>(std::max(blocks, 1)), static_cast<unsigned int>(block),
                what, [&] {
                    call.enqueue();
                    call.stream.synchronize();
                });
    constexpr std::size_t sums_an_element = 100;  // with doubling distances it is 30
    check_shares(
        what, {read_by_all("counts", call.counts), written_by_all("starts", call.starts)},
        [&] {
            call.enqueue();
            call.stream.synchronize();
        },
        sums_an_element);
    OneCall late(std::vector<int>(counts.size(), 1), blocks, block);
    check_host_goes_on(what, late.stream, late.counts, call.counts, [&] { late.enqueue(); });
    held();
}

void check_one_block() {
    const std::string odd = "The number of threads is not a power of two.";
    check_starts(1, 0, 32, "No count comes before the first one.");
    check_starts(
        64, 0, 64,
        "There is one count for each thread: after the step with distance d = 1, 2, 4, ... a "
        "sum covers 2 d counts.");
    check_starts(5, 0, 64, "There are fewer counts than threads.");
    check_starts(
        640, 0, 64,
        "There are more counts than threads: each round begins with the sum of all earlier "
        "rounds. (Or does a thread go on before the others have read or written their "
        "sums? A step has two __syncthreads().)");
    for (const int block : {1, 3, 48, 100, 1000})
        check_starts(1009, 0, block, odd);
    check_starts(0, 0, 32, "");
    check_work(1009, 0, 100);
}

void check_many_blocks() {
    check_starts(
        256, 4, 64,
        "Each block scans a chunk, and the chunk of block 1 begins with the sum of block 0's.");
    check_starts(5'003, 7, 96, "The counts do not divide evenly among the blocks.");
    check_starts(3, 8, 32, "Most blocks have nothing to do here.");
    check_starts(3'000, 130, 32, "There are more blocks than threads in a block.");
    check_starts(0, 4, 32, "");
    check_work(5'003, 7, 100);
}

// ---- Task compact

bool is_in_another_order(std::vector<int> places, const std::vector<int>& right) {
    std::ranges::sort(places);
    return places == right;
}

void check_compact(const std::vector<float>& values, float threshold, int blocks, int block,
                   const std::string& hint) {
    std::vector<int> right;
    for (std::size_t i = 0; i < values.size(); i++)
        if (std::abs(values[i]) >= threshold)
            right.push_back(static_cast<int>(i));

    Stream stream;
    const std::size_t n = values.size();
    const Buffer<float> input(values);
    Buffer<float> kept(std::vector<float>(n, static_cast<float>(unused)));
    Buffer<int> places(std::vector<int>(n, unused)), count(std::vector<int>{unused});
    Buffer<int> scratch(std::vector<int>(2 * n + static_cast<std::size_t>(blocks), unused));
    compact(input.data(), static_cast<int>(n), threshold, blocks, block, scratch.data(),
            {kept.data(), places.data(), count.data()}, stream);
    stream.synchronize();

    const std::string what = std::to_string(n) + " values, " + shape(blocks, block) + ": ";
    const bool is_last_kept = !right.empty() && right.back() + 1 == static_cast<int>(n);
    if (const int yours = count.to_host_now()[0]; yours != static_cast<int>(right.size()))
        throw Wrong(what + "you keep " + std::to_string(yours) + " of them, right are " +
                    std::to_string(right.size()) + ".\n" +
                    (yours == static_cast<int>(right.size()) + 1 && !is_last_kept
                         ? "The last value is not kept here: do you count it? "
                         : "") +
                    hint);
    const std::vector<float> kept_values = kept.to_host_now();
    std::vector<int> kept_places = places.to_host_now();
    kept_places.resize(right.size());
    if (kept_places != right && is_in_another_order(kept_places, right))
        throw Wrong(
            what + "the right values are kept, but not in the order of their places: places[" +
            std::to_string(std::ranges::mismatch(kept_places, right).in1 - kept_places.begin()) +
            "] is wrong.\nWith an atomic, each thread gets the next free place, in the order "
            "in which the threads arrive. The sum before a value says where it goes.");
    for (std::size_t k = 0; k < right.size(); k++) {
        if (kept_places[k] != right[k])
            throw Wrong(what + "places[" + std::to_string(k) + "] is " +
                        std::to_string(kept_places[k]) + ", right is " + std::to_string(right[k]) +
                        ".\n" + hint);
        if (kept_values[k] != values[static_cast<std::size_t>(right[k])])
            throw Wrong(what + "the kept value " + std::to_string(k) + " is not values[" +
                        std::to_string(right[k]) + "].\n" + hint);
    }
}

void check_compact_task() {
    std::vector<float> values;
    for (int i = 0; i < 2'021; i++)
        values.push_back(static_cast<float>(i * 37 % 101 - 50) / 8);
    const std::vector<float> few(values.begin(), values.begin() + 64);
    check_compact({0.5f, 2}, 1, 1, 32, "The last value is kept, and it counts as well.");
    check_compact({1, -1, 2, 0.5f}, 1, 1, 32,
                  "The threshold is 1, and |-1| is not below it: both 1 and -1 are kept.");
    check_compact(few, 1000, 2, 32, "No value is large enough: the count is 0.");
    check_compact(few, 0, 2, 32, "All of them are kept.");
    check_compact(values, 5, 7, 96,
                  "A kept value's place in the result is the number of values kept before it.");
}

}  // namespace

std::vector<Task> tasks() {
    return {{"prefix_sums", check_one_block},
            {"over_blocks", check_many_blocks},
            {"compact", check_compact_task}};
}

}  // namespace ddp::test
