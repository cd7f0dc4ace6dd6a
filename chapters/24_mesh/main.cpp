// Trains one small language model on every mesh of this many ranks: replicas, stages and parts.
// Each with at most two replicas ends in the bits of one rank that takes the same sums.
#include <iostream>

#include "05_ranks/world.hpp"
#include "11_data_parallel/replica.hpp"
#include "24_mesh/show/reports.hpp"
#include "common/report/csv.hpp"
#include "common/report/options.hpp"

namespace {

using namespace ddp;

int run(World& world, const CommonOptions& common, MeshPlan plan, const std::string& mesh) {
    plan.seed = common.seed;
    const std::vector<MeshShape> shapes =
        mesh == "all" ? all_shapes(world.world_size()) : std::vector{mesh_shape_of(mesh)};
    world.run([&](Rank& rank) {
        rank.select_device();
        show_meshes(rank, plan, shapes, common.csv);
        if (rank.world_size() > 1)
            show_schedules(rank, common.quick ? std::vector{4} : std::vector{4, 8},
                           beside(common.csv, "schedules"));
    });
    if (world.has_rank_0())
        show_axis_costs();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    MeshPlan plan;
    std::string mesh = "all", schedule = "1f1b";
    Options parser("mesh",
                   "How do several ranks share one model? By parts, by stages, by replicas.");
    parser.add_taken("--mesh", "DxPxT", "replicas x stages x parts; all of them unless given",
                     [&](const std::string& text, CommonOptions&) { mesh = text; });
    parser.add_choice("--schedule", schedule, {"1f1b", "gpipe"}, "the order of a stage's work");
    parser.add_int("--steps", plan.steps, {1, 100'000}, "of each training");
    parser.with_quick("--steps", [&] { plan.steps = 3; });
    parser.refuse({"--trace"}, "the timeline of a step is in 15_overlap");
    parser.refuse({"--data"}, "the sentences are made up");
    parser.example("--ranks 8 --mesh 2x2x2", "two replicas of two stages of two parts");
    return run_ranks(argc, argv, parser, [&](World& world, const CommonOptions& common) {
        plan.schedule = schedule == "gpipe" ? Schedule::gpipe : Schedule::one_f_one_b;
        return run(world, common, plan, mesh);
    });
}
