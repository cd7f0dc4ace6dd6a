// Chapter 06: how are gradients summed on one rank? By a tree, in five versions, each faster than
// the one before it; and no two of them give the same last bits. Then across ranks, by a tree
// again.
#include <iostream>

#include "04_ranks/world.hpp"
#include "06_reduce/across_ranks.hpp"
#include "06_reduce/order_report.hpp"
#include "06_reduce/reduce_times.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

struct ReduceOptions {
    int elements = kernels_run_on_cpu ? 16 << 20 : 256 << 20;
};

constexpr unsigned int kBlock = 256;

// Who adds what in each step, for `count` elements, a power of two.
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

void show_times(const ReduceOptions& mine, const CommonOptions& common) {
    std::vector<BlockReduce> versions;
    for (const ReduceVersion version : reduce_versions)
        versions.push_back({version, kBlock});
    const auto elements = static_cast<std::size_t>(mine.elements);
    report("Five ways to one sum, and the memory's limit",
           time_reductions(versions, elements, common.quick ? 3 : 9), common.csv);
    std::cout << "\n";
}

int run(int argc, char** argv) {
    ReduceOptions mine;
    Options options("reduce", "How are gradients summed on one rank? And across ranks?");
    options.add_int("--elements", mine.elements, {1 << 10, 1 << 28}, "floats to add up");
    options.refuse({"--data", "--trace"}, "this chapter adds up numbers of its own");
    options.refuse({"--link"}, "the sum across ranks has a link of its own here");
    options.example("--elements 100000", "an array that fits in a cache");
    options.example("--ranks 5", "across five ranks");
    const CommonOptions common = options.parse(argc, argv);
    if (const std::optional<int> status = launch_processes(common, argv))
        return *status;
    // First, although it is shown last: the other processes of a job need not wait for the rest.
    const std::optional<Table> across = sum_across_ranks(common);
    if (!across)
        return 0;
    show_tree(8);
    show_times(mine, common);
    show_orders(common.seed, kBlock, beside(common.csv, "orders"));
    std::cout << "\n" << *across;
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_world_main([&] { return run(argc, argv); });
}
