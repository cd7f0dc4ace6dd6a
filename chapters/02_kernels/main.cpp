// What is a kernel? Many threads, what makes them wait and what happens if they do not;
// then one array becomes one number in five versions.
#include <iostream>

#include "02_kernels/show/kernel_reports.hpp"
#include "02_kernels/show/reduce_times.hpp"
#include "common/report/main.hpp"
#include "common/report/options.hpp"
#include "common/report/table.hpp"

namespace {

using namespace ddp;

struct KernelsOptions {
    int elements = kernels_run_on_cpu ? 16 << 20 : 256 << 20;
};

constexpr unsigned int block_threads = 256;

// Prints the additions of each step, for `count` elements, a power of two.
void show_tree(int count) {
    Table table(
        std::to_string(count) + " elements become one in log2(" + std::to_string(count) + ") steps",
        {"step", "interleaved: with the neighbour", "sequential: with the other half"});
    for (int step = 1, distance = 1; distance < count; step++, distance *= 2) {
        const auto pair = [](int a, int b) {
            return "x" + std::to_string(a) + "+x" + std::to_string(b) + "  ";
        };
        const int half = count / 2 / distance;
        std::string interleaved, sequential;
        for (int i = 0; i < half; i++) {
            interleaved += pair(2 * distance * i, 2 * distance * i + distance);
            sequential += pair(i, i + half);
        }
        table.row({std::to_string(step), interleaved, sequential});
    }
    std::cout << table << "\n";
}

// Times all versions beside the limit, and prints their work and their times.
void show_times(const KernelsOptions& options, const CommonOptions& common) {
    std::vector<BlockReduce> versions;
    for (const ReduceVersion version : reduce_versions)
        versions.push_back({version, block_threads});
    const auto elements = static_cast<std::size_t>(options.elements);
    const std::vector<ReduceTime> times = time_reductions(versions, elements, common.quick ? 3 : 9);
    report_work(versions, times, common.csv);
    std::cout << "\n";
    report("Five versions of a sum, and the memory's limit", times, common.csv);
}

int run(int argc, char** argv) {
    KernelsOptions options;
    Options parser("kernels",
                   "What is a kernel? Threads, streams, races, barriers, and five sums.");
    parser.add_int("--elements", options.elements, {1 << 10, 1 << 28}, "floats to add up");
    parser.with_quick("--elements", [&] { options.elements = options.elements / 4; });
    parser.refuse({"--data", "--trace", "--seed"}, "this chapter adds up numbers of its own");
    parser.refuse({"--ranks", "--processes", "--link", "--timeout"},
                  "this chapter computes on one device; ranks begin in 05_ranks");
    parser.example("--elements 100000", "an array that fits in a cache");
    const CommonOptions common = parser.parse(argc, argv);
    show_threads();
    show_looks();
    show_race();
    show_barrier();
    show_warps(common.csv);
    show_tree(8);
    show_times(options, common);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_main([&] { return run(argc, argv); });
}
