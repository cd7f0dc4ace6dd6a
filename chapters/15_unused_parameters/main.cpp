// Chapter 15: why does it hang? Five ways to wait in vain, what is said of them, their cures, and
// what the cures cost.
#include <iostream>

#include "15_unused_parameters/show/costs.hpp"
#include "15_unused_parameters/show/demo.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

void show_costs(Rank& rank, const CommonOptions& common) {
    rank.select_device();
    const std::vector<StepCost> costs = measure_steps(rank, common.seed, common.quick ? 10 : 200);
    const double search_s = measure_search(rank, common.seed);
    if (rank.rank() != 0)
        return;
    Table table("What the cures cost in a step that needs none",
                {"way", "a step", "times plain DDP's"});
    CsvWriter csv(common.csv, {"way", "ranks", "step_ms", "ratio"});
    for (const StepCost& cost : costs) {
        table.row({cost.way, format_seconds(cost.seconds), format_fixed(cost.ratio, 2)});
        csv.row({cost.way, rank.world_size(), cost.seconds * 1e3, cost.ratio});
    }
    table.note("The search alone takes " + format_seconds(search_s) + " of the host's time.");
    std::cout << "\n" << table;
}

int run(int argc, char** argv) {
    Options options("unused_parameters",
                    "Why does it hang? Five ways to wait in vain, and their cures.");
    options.refuse({"--trace"}, "the timeline of a step is in chapter 14");
    options.refuse({"--data"}, "the pictures are drawn");
    options.example("--ranks 3", "three ranks, of which the last one is different");
    options.example("--link 1GB/s,1ms", "what the cures cost where messages take their time");
    const CommonOptions common = options.parse(argc, argv);
    if (const std::optional<int> status = launch_processes(common, argv))
        return *status;
    World world(common);
    if (world.world_size() == 1)
        std::cout
            << "One rank waits for nobody: here are the cures alone, and --ranks 3 shows what "
               "they cure.\n";
    Demo demo(world, common);
    for (const FailureCase failure : all_failure_cases)
        demo.show(failure);
    world.run([&](Rank& rank) { show_costs(rank, common); });
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_world_main([&] { return run(argc, argv); });
}
