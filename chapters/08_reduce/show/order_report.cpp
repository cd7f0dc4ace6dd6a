#include "08_reduce/show/order_report.hpp"

#include <iostream>

#include "02_kernels/block_reduce.hpp"
#include "02_kernels/sum_orders.hpp"
#include "common/data/random.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

std::vector<float> floats_to_add(std::uint64_t seed) {
    std::vector<float> values(1'000'003);
    Random random(seed);
    for (float& value : values)
        value = random.uniform(0, 1);
    return values;
}

float sum_on_device(const BlockReduce& how, const std::vector<float>& values) {
    Stream stream;
    Buffer<float> device(values), scratch(scratch_elements(how, values.size())), sum(1);
    block_reduce<ReduceOp::sum>(how, values.size(), device.data(), sum.data(), scratch.data(),
                                stream);
    stream.synchronize();
    return sum.to_host()[0];
}

}  // namespace

void show_orders(std::uint64_t seed, unsigned int block, const std::filesystem::path& csv) {
    const std::vector<float> values = floats_to_add(seed);
    const double exact = sum_in_double(values);
    Table table("The same " + format_count(static_cast<std::int64_t>(values.size())) +
                    " floats in several orders",
                {"order", "sum", "units of the last place"});
    CsvWriter file(csv, {"order", "sum", "last_places"});
    const auto add = [&](const std::string& order, float sum) {
        const double error = error_in_last_places(sum, exact);
        table.row({order, format_fixed(sum, 5), format_fixed(error, 1)});
        file.row({order, sum, error});
    };
    add("forward", sum_forward(values));
    add("backward", sum_backward(values));
    add("pairs of neighbours", sum_of_neighbours(values));
    add("tree of halves", sum_of_halves(values));
    for (const ReduceVersion version : reduce_versions)
        add("kernel, " + name_of(version), sum_on_device({version, block}, values));
    table.row({"exact, in double", format_fixed(exact, 5), "0.0"});
    table.note(
        "Atomics add in the order in which threads come, on a GPU another in every run. All "
        "other orders are fixed: the same bits in every run.");
    std::cout << table;
}

}  // namespace ddp
