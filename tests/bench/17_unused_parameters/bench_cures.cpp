// Measures the cures in a step that needs none of them.
#include <iostream>

#include "05_ranks/world.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"
#include "tests/bench/17_unused_parameters/costs.hpp"

namespace {

using namespace ddp;

void show_costs(Rank& rank, const CommonOptions& common) {
    rank.select_device();
    const std::vector<StepCost> costs = measure_steps(rank, common.seed, common.quick ? 10 : 200);
    const double search_s = measure_search(rank, common.seed);
    if (rank.rank() != 0)
        return;
    Table table("What the cures cost in a step that needs none",
                {"training", "a step", "relative to plain DDP"});
    CsvWriter csv(common.csv, {"way", "ranks", "step_ms", "ratio"});
    for (const StepCost& cost : costs) {
        table.row({cost.training, format_seconds(cost.seconds),
                   common.quick ? "-" : format_fixed(cost.ratio, 2)});
        if (!common.quick)
            csv.row({cost.training, rank.world_size(), cost.seconds * 1e3, cost.ratio});
    }
    table.note(common.quick
                   ? "So few steps show nothing about the costs: run it without --quick."
                   : "relative to plain DDP: the median of the ratios, each to a plain step that "
                     "was measured beside it");
    table.note("The search alone takes " + format_seconds(search_s) + " of the host's time.");
    std::cout << table;
}

}  // namespace

int main(int argc, char** argv) {
    Options parser("bench_cures", "What finding unused parameters, a static graph and join cost.");
    parser.refuse({"--trace"}, "the timeline of a step is in 15_overlap");
    parser.refuse({"--data"}, "the pictures are drawn");
    parser.example("--ranks 2 --link 1GB/s,1ms", "where a message takes its time");
    return run_ranks(argc, argv, parser, [&](World& world, const CommonOptions& common) {
        world.run([&](Rank& rank) { show_costs(rank, common); });
        return 0;
    });
}
