// How are gradients summed on one rank? A sum of floats depends on the order of its
// additions; across ranks a tree fixes that order, and takes log2(N) steps.
#include <iostream>

#include "02_kernels/block_reduce.hpp"
#include "02_kernels/support/sum_orders.hpp"
#include "05_ranks/world.hpp"
#include "08_reduce/show/across_ranks.hpp"
#include "common/data/random.hpp"
#include "common/report/csv.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

constexpr unsigned int block_threads = 256;

std::vector<float> floats_to_add(std::uint64_t seed) {
    std::vector<float> values(1'000'003);
    Random random(seed);
    for (float& value : values)
        value = random.uniform(0, 1);
    return values;
}

float sum_on_device(const BlockReduce& config, const std::vector<float>& values) {
    Stream stream;
    Buffer<float> device(values), scratch(scratch_elements(config, values.size())), sum(1);
    block_reduce<ReduceOp::sum>(config, values.size(), device.data(), sum.data(), scratch.data(),
                                stream);
    stream.synchronize();
    return sum.to_host_now()[0];
}

// Adds up the same floats by the loops of sum_orders.hpp and by the kernels.
void show_orders(const CommonOptions& common) {
    const std::vector<float> values = floats_to_add(common.seed);
    const double exact = sum_in_double(values);
    Table table("The same " + format_count(static_cast<std::int64_t>(values.size())) +
                    " floats in several orders",
                {"order", "sum", "units of the last place"});
    CsvWriter csv(common.csv, {"order", "sum", "last_places"});
    const auto add = [&](const std::string& order, float sum) {
        const double error = error_in_last_places(sum, exact);
        table.row({order, format_fixed(sum, 5), format_fixed(error, 1)});
        csv.row({order, sum, error});
    };
    add("forward", sum_forward(values));
    add("backward", sum_backward(values));
    add("pairs of neighbours", sum_of_neighbours(values));
    add("tree of halves", sum_of_halves(values));
    for (const ReduceVersion version : reduce_versions)
        add("kernel, " + name_of(version), sum_on_device({version, block_threads}, values));
    table.row({"exact, in double", format_fixed(exact, 5), "0.0"});
    table.note(
        "Atomics add in the order in which threads come, which on a GPU differs from run to run. "
        "All "
        "other orders are fixed: the same bits in every run.");
    std::cout << table;
}

int run(int argc, char** argv) {
    Options parser("reduce", "How are gradients summed on one rank?");
    parser.refuse({"--data", "--trace"}, "this chapter adds up numbers of its own");
    parser.refuse({"--link"}, "the sum across ranks has a link of its own here");
    parser.example("--ranks 5", "across five ranks");
    const CommonOptions common = parser.parse(argc, argv);
    if (find_starter(common) == StartedBy::none)
        require_writable(common);
    if (const std::optional<int> status = launch_processes(common, argv))
        return *status;
    // First, although it is shown last: the other processes of a job need not wait for the rest.
    const std::optional<Table> across = sum_across_ranks(common);
    if (!across)
        return 0;
    show_orders(common);
    std::cout << "\n" << *across;
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_world_main([&] { return run(argc, argv); });
}
