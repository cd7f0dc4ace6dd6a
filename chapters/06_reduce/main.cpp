// Chapter 06: how are gradients summed on one rank? By a tree, in five versions, each faster than
// the one before it; and no two of them give the same last bits. Then across ranks, by a tree
// again.
#include <iostream>

#include "04_ranks/world.hpp"
#include "06_reduce/across_ranks.hpp"
#include "06_reduce/reduce_times.hpp"
#include "06_reduce/sum_orders.hpp"
#include "common/data/random.hpp"
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

float sum_on_device(const BlockReduce& how, const std::vector<float>& values) {
    Stream stream;
    Buffer<float> device(values), scratch(scratch_elements(how, values.size())), sum(1);
    block_reduce<ReduceOp::sum>(how, values.size(), device.data(), sum.data(), scratch.data(),
                                stream);
    stream.synchronize();
    return sum.to_host()[0];
}

void show_orders(std::uint64_t seed) {
    std::vector<float> values(1'000'003);
    Random random(seed);
    for (float& value : values)
        value = random.uniform(0, 1);
    const double exact = sum_in_double(values);
    Table table("The same " + format_count(static_cast<std::int64_t>(values.size())) +
                    " floats in several orders",
                {"order", "sum", "units of the last place"});
    const auto add = [&](const std::string& order, float sum) {
        table.row({order, format_fixed(sum, 5), format_fixed(error_in_last_places(sum, exact), 1)});
    };
    add("forward", sum_forward(values));
    add("backward", sum_backward(values));
    add("pairs of neighbours", sum_of_neighbours(values));
    add("tree of halves", sum_of_halves(values));
    for (const ReduceVersion version : reduce_versions)
        add("kernel, " + name_of(version), sum_on_device({version, kBlock}, values));
    table.row({"exact, in double", format_fixed(exact, 5), "0.0"});
    table.note(
        "Atomics add in the order in which threads come, on a GPU another in every run. All "
        "other orders are fixed: the same bits in every run.");
    std::cout << table;
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
    show_orders(common.seed);
    std::cout << "\n" << *across;
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_world_main([&] { return run(argc, argv); });
}
