#include "02_kernels/show/kernel_reports.hpp"

#include <iostream>
#include <numeric>
#include <string>

#include "02_kernels/race.hpp"
#include "02_kernels/streams.hpp"
#include "02_kernels/tree.hpp"
#include "02_kernels/vector_add.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

// Returns a header: `first`, then 0, 1, ... count - 1.
std::vector<std::string> numbered(const std::string& first, int count) {
    std::vector<std::string> header{first};
    for (int i = 0; i < count; i++)
        header.push_back(std::to_string(i));
    return header;
}

// Prints the block and the thread of each place.
void show_places(const std::string& title, const std::vector<ThreadPlace>& places) {
    Table table(title, numbered("i", static_cast<int>(places.size())));
    std::vector<std::string> blocks{"block"}, threads{"thread"};
    for (const ThreadPlace& place : places) {
        blocks.push_back(std::to_string(place.block));
        threads.push_back(std::to_string(place.thread));
    }
    table.row(blocks);
    table.row(threads);
    std::cout << table << "\n";
}

// Returns 1, 2, 3, ... count.
std::vector<int> counted(int count) {
    std::vector<int> values(static_cast<std::size_t>(count));
    std::iota(values.begin(), values.end(), 1);
    return values;
}

void show_steps(const std::string& title, const TreeSteps& steps, int right) {
    Table table(title, numbered("thread", static_cast<int>(steps.cells[0].size())));
    for (std::size_t step = 0; step < steps.cells.size(); step++) {
        std::vector<std::string> row{step == 0 ? "values" : "step " + std::to_string(step)};
        for (const TreeCell& cell : steps.cells[step])
            row.push_back(step == 0 || cell.has_added ? std::to_string(cell.value) : "");
        table.row(row);
    }
    table.note("The sum is " + std::to_string(steps.sum) + "; right is " + std::to_string(right) +
               ".");
    std::cout << table << "\n";
}

void show_accesses(const std::string& title, const Race& race) {
    Table table(title, {"step", "thread 0 adds 1", "thread 1 adds 2"});
    for (std::size_t i = 0; i < race.accesses.size(); i++) {
        const SumAccess& access = race.accesses[i];
        const std::string what =
            (access.is_write ? "writes " : "reads ") + std::to_string(access.value);
        table.row({std::to_string(i + 1), access.thread == 0 ? what : "",
                   access.thread == 1 ? what : ""});
    }
    table.note("The sum is " + std::to_string(race.sum) + "; right is 3.");
    std::cout << table << "\n";
}

}  // namespace

void show_threads() {
    constexpr unsigned int n = 10;
    show_places("By index: element i is computed by ... (3 blocks of 4 threads)",
                places_by_index(n, 3, 4));
    show_places("By grid_range: element i is computed by ... (2 blocks of 2 threads)",
                places_by_grid_range(n, 2, 2));

    constexpr std::size_t many = 1'000'000, threads = 256;
    std::vector<float> a(many), b(many);
    std::iota(a.begin(), a.end(), 0.0f);
    for (std::size_t i = 0; i < many; i++)
        b[i] = 2 * a[i];
    const std::vector<float> sums = add_on_device(a, b, threads);
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < many; i++)
        wrong += sums[i] != a[i] + b[i];
    std::cout << "A vector add: " << format_count(many) << " elements in "
              << format_count((many + threads - 1) / threads) << " blocks of " << threads
              << " threads; " << format_count(wrong) << " sums are wrong.\n\n";
}

void show_looks() {
    // Enough for the device to need longer than the host, which enqueues all of it.
    constexpr std::size_t elements = kernels_run_on_cpu ? 16 << 20 : 256 << 20;
    const ThreeLooks looks = look_three_times(elements);
    Table table("Two results, and what the host reads", {"", "after", "first", "second"});
    const auto row = [&](const std::string& name, const HostLook& look) {
        table.row({name, format_seconds(look.seconds), format_fixed(look.first, 0),
                   format_fixed(look.second, 0)});
    };
    row("at once", looks.at_once);
    row("after the event", looks.after_event);
    row("after synchronize", looks.after_synchronize);
    table.note("The results are 2 and 4. A 0 is what was in the host's memory before.");
    std::cout << table << "\n";
}

void show_race() {
    show_accesses("Two threads, one sum, without an atomic", race_of_two(false));
    show_accesses("Two threads, one sum, with atomicAdd", race_of_two(true));

    constexpr int additions = 10'000'000, runs = 3;
    Table table(
        "Two threads at the same time add 1 to a sum, " + format_count(additions) + " times each",
        {"", "run 1", "run 2", "run 3"});
    for (const bool with_atomic : {false, true}) {
        std::vector<std::string> row{with_atomic ? "atomicAdd(sum, 1)" : "*sum = *sum + 1"};
        for (int i = 0; i < runs; i++)
            row.push_back(format_count(sum_of_ones(additions, with_atomic)));
        table.row(row);
    }
    std::cout << table << "\n";
}

void show_barrier() {
    const std::vector<int> values = counted(8);
    show_steps("A block's shared memory, with a barrier after each step",
               sum_of_block(TreeKernel::sequential, values), 36);
    show_steps("The same kernel without these barriers",
               sum_of_block(TreeKernel::without_barriers, values), 36);
}

void show_warps(const std::filesystem::path& csv) {
    constexpr std::size_t threads = 128, lanes = 32;
    const TreeSteps interleaved = sum_of_block(TreeKernel::interleaved, counted(threads));
    const TreeSteps sequential = sum_of_block(TreeKernel::sequential, counted(threads));
    CsvWriter file(csv.empty() ? csv : beside(csv, "warps"), {"order", "step", "thread"});
    // Returns the busy lanes of each warp, and writes them to the file.
    const auto busy_lanes = [&](const std::string& order, const TreeSteps& steps,
                                std::size_t step) {
        std::string text;
        std::size_t busy = 0;
        for (std::size_t thread = 0; thread < threads; thread++) {
            const bool is_busy = steps.cells[step][thread].has_added;
            busy += is_busy;
            if (is_busy)
                file.row({order, step, thread});
            if (thread % lanes == lanes - 1) {
                const std::string number = busy == 0 ? "." : std::to_string(busy);
                text += std::string(4 - number.size(), ' ') + number;
                busy = 0;
            }
        }
        return text;
    };
    Table table("Busy lanes in each of the four warps of a block of 128 threads",
                {"step", "interleaved", "sequential"});
    for (std::size_t step = 1; step < sequential.cells.size(); step++)
        table.row({std::to_string(step), busy_lanes("interleaved", interleaved, step),
                   busy_lanes("sequential", sequential, step)});
    std::cout << table << "\n";
}

}  // namespace ddp
