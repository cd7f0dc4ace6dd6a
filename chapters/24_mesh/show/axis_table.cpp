#include <algorithm>
#include <iostream>
#include <vector>

#include "21_cluster/measured/comparison.hpp"
#include "24_mesh/axis_costs.hpp"
#include "24_mesh/show/reports.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr int sequences = 1024;
constexpr double memory = 80e9;

std::string gb(double bytes) {
    return format_fixed(bytes / 1e9, 1) + " GB";
}

}  // namespace

void show_axis_costs() {
    const double error = mean_error(published_all_reduce, comparisons_with_published());
    Table table(
        "A step of 1,024 sequences of 4,096 tokens (simulated)",
        {"model", "GPUs", "mesh", "memory", "compute", "idle", "tp", "pp", "dp", "step", "if off"});
    const auto add = [&](const LargeModel& model, const MeshShape& shape, bool is_best) {
        const MeshCost cost = cost_of(model, shape, sequences);
        const double longer = error * (cost.tp.seconds + cost.dp.exposed_s) / cost.step_s();
        table.row({model.name, std::to_string(shape.ranks()), shape.text() + (is_best ? " *" : ""),
                   gb(cost.memory()) + (cost.memory() > memory ? " !" : ""),
                   format_seconds(cost.compute_s), format_seconds(cost.idle_s),
                   format_seconds(cost.tp.exposed_s), format_seconds(cost.pp.exposed_s),
                   format_seconds(cost.dp.exposed_s), format_seconds(cost.step_s()),
                   "+" + format_percent(longer)});
    };
    for (const LargeModel& model : {llama_7b, llama_70b})
        for (const int ranks : {64, 4096}) {
            const int replicas = std::min(ranks, sequences);
            std::vector<MeshShape> shapes{{replicas, ranks / replicas, 1},
                                          best_shape(model, ranks, sequences, memory, 8)};
            if (model.name == llama_7b.name)
                shapes.push_back(best_shape(model, ranks, sequences, memory, 16));
            const MeshShape best = best_shape(model, ranks, sequences, memory);
            if (std::ranges::find(shapes, best) == shapes.end())
                shapes.push_back(best);
            for (const MeshShape& shape : shapes)
                add(model, shape, shape == best);
        }
    table.note(
        "H100s of 400 TFLOP/s, eight in a node: 370 GB/s inside, and a port of 48 GB/s for "
        "each. The optimizer's state is sharded over dp. tp, pp, dp: exposed. !: does not fit "
        "into 80 GB. *: the fastest mesh that does.");
    table.note("If off: how much longer the step is if all-reduces take " + format_percent(error) +
               " longer, the simulator's mean error for published ones.");
    std::cout << table << "\n";
}

}  // namespace ddp
