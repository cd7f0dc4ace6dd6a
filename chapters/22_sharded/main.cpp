// Trains one model with everything on every rank, and with less of it at each stage: shows what
// each rank keeps and receives, and that all stages end in the same bits.
#include <iostream>

#include "03_network/models.hpp"
#include "05_ranks/world.hpp"
#include "15_overlap/training.hpp"
#include "22_sharded/show/bill_table.hpp"
#include "22_sharded/show/failover.hpp"
#include "22_sharded/show/hybrid.hpp"
#include "22_sharded/show/stages.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

struct ShardedOptions {
    int steps = 100;
    int batch = 32;
    std::string optimizer = "adam";
    int stage = 3;  // of the training with checkpoints
    CheckpointPlan checkpoints{.every = 20};
    bool failover = false;
    bool hybrid = false;
    AllReduceOrder order;  // of DDP's sums beside the hybrid
};

void show_stages(Rank& rank, const LabelledImages& images, const ShardedOptions& mine,
                 const CommonOptions& common) {
    const bool prints = rank.rank() == 0;
    CsvWriter csv(prints ? common.csv : "", {"stage", "parameters", "gradients", "moments",
                                             "received_per_step", "seconds_per_step", "hash"});
    Table table("What a rank keeps and receives: " + std::to_string(mine.steps) + " steps, " +
                    std::to_string(rank.world_size()) + " ranks",
                {"stage", "parameters", "gradients", "moments", "received a step", "hash"});
    std::string first;
    bool are_equal = true;
    for (const int stage : {0, 1, 2, 3}) {
        const StageResult result = train_at_stage(rank, images,
                                                  {.stage = stage,
                                                   .steps = mine.steps,
                                                   .batch = mine.batch,
                                                   .optimizer = mine.optimizer,
                                                   .seed = common.seed});
        const auto kib = [](std::size_t bytes) {
            return format_fixed(static_cast<double>(bytes) / 1024, 0) + " KiB";
        };
        table.row({stage == 0 ? "0: DDP" : std::to_string(stage), kib(result.parameters),
                   kib(result.gradients), kib(result.moments), kib(result.received_per_step),
                   result.hash});
        csv.row({stage, result.parameters, result.gradients, result.moments,
                 result.received_per_step, result.seconds_per_step, result.hash});
        first = stage == 0 ? result.hash : first;
        are_equal = are_equal && result.hash == first;
    }
    if (!are_equal)
        throw std::runtime_error("the stages end in different bits: a sum has another order");
    if (prints)
        std::cout << table << "All stages end in the same bits.\n";
}

int run(World& world, const CommonOptions& common, ShardedOptions mine) {
    if (common.quick)
        mine.steps = std::min(mine.steps, 5);
    const StagePlan plan{.stage = mine.stage,
                         .steps = mine.steps,
                         .batch = mine.batch,
                         .optimizer = mine.optimizer,
                         .seed = common.seed};
    if (mine.failover) {
        show_failover(plan, common);
        return 0;
    }
    mine.order.require(world.job());
    FashionMnist data;
    world.prepare([&] { data = load_data(common); });
    if (data.train.image_size() != 784 || data.train.classes != 10)
        throw OptionError("this chapter's --data must have 28 x 28 pixels and ten classes.");
    require_batch(mine.batch, data.train.count(), world.world_size());
    StagePlan hybrid_plan = plan;
    hybrid_plan.order = mine.order;
    world.run([&](Rank& rank) {
        if (!mine.checkpoints.folder.empty())
            return train_from_checkpoints(rank, data.train, plan, mine.checkpoints);
        rank.select_device();
        if (mine.hybrid)
            return show_hybrid(rank, data.train, hybrid_plan, common.csv);
        show_bill(rank, stage_widths, mine.batch, beside(common.csv, "bill"));
        show_stages(rank, data.train, mine, common);
    });
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    ShardedOptions mine;
    Options options("sharded", "What if the model does not fit? Every rank keeps a part of it.");
    options.add_int("--steps", mine.steps, {1, 100'000}, "of each training");
    options.add_int("--batch", mine.batch, {1, 60'000}, "pictures a step and rank");
    options.add_choice("--optimizer", mine.optimizer, {"adam", "sgd"}, "what changes the chunks");
    options.add_int("--stage", mine.stage, {1, 3}, "of the training with --folder or --failover");
    options.add_taken(
        "--folder", "DIR", "train from the last checkpoint in this folder",
        [&](const std::string& text, CommonOptions&) { mine.checkpoints.folder = text; });
    options.add_int("--every", mine.checkpoints.every, {1, 1'000'000},
                    "steps between two checkpoints");
    options.add_flag("--failover", mine.failover, "ranks are killed, and the training goes on");
    options.add_flag("--hybrid", mine.hybrid, "sharded in each node, replicated between nodes");
    mine.order.add_to(options);
    options.refuse({"--trace"}, "the timeline of a step is in 15_overlap");
    options.example("--ranks 3", "a number that divides no layer");
    options.example("--processes 4 --optimizer sgd", "processes, and one moment in place of two");
    options.example("--stage 3 --folder run1", "again after Ctrl-C: it goes on");
    options.example("--hybrid --shape 2x3", "two simulated nodes of three ranks");
    return run_ranks(argc, argv, options, [&](World& world, const CommonOptions& common) {
        return run(world, common, mine);
    });
}
