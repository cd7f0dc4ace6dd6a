// Trains one model with everything on every rank, and with less of it at each stage: shows the
// bytes that each rank keeps and receives, and that all stages end in the same bits.
#include "03_network/models.hpp"
#include "05_ranks/world.hpp"
#include "15_overlap/training.hpp"
#include "22_sharded/show/tables.hpp"
#include "common/report/csv.hpp"

namespace {

using namespace ddp;

struct ShardedOptions {
    std::string stage = "all";
    StagePlan plan{.steps = 100, .batch = 0};
    CheckpointPlan checkpoints{.every = 20, .takes_sigterm = true};
    bool failover = false, hybrid = false;
    AllReduceOrder order;  // of DDP's sums beside the hybrid

    std::vector<int> stages() const {
        return stage == "all" ? std::vector{0, 1, 2, 3} : std::vector{std::stoi(stage)};
    }
    bool saves() const { return failover || !checkpoints.folder.empty(); }
};

// Completes the plan, and refuses options that do not go together.
void complete(ShardedOptions& options, const CommonOptions& common) {
    StagePlan& plan = options.plan;
    plan.seed = common.seed;
    plan.stage = options.stages().back();
    if (plan.batch == 0)
        plan.batch = plan.model == "mlp" ? 32 : 4;
    if (options.saves() && plan.stage == 0)
        throw OptionError("--folder and --failover need a sharded stage: give --stage 1, 2 or 3.");
    if ((plan.clip || plan.bfloat16) && (options.hybrid || options.saves()))
        throw OptionError(
            "--clip and --bfloat16 work with the table of stages only: leave out --folder, "
            "--failover and --hybrid.");
    if (plan.bfloat16 && plan.stage < 3)
        throw OptionError("--bfloat16 needs stage 3, which gathers: leave out --stage.");
    if (options.hybrid && options.saves())
        throw OptionError(
            "Hybrid sharding does not support checkpoints yet: leave out --folder and "
            "--failover.");
    if (options.hybrid && plan.stage < 3)
        throw OptionError("Hybrid sharding needs stage 3: leave out --stage.");
}

int run(World& world, const CommonOptions& common, ShardedOptions options) {
    complete(options, common);
    const StagePlan& plan = options.plan;
    if (options.failover) {
        show_failover(plan, common);
        return 0;
    }
    options.order.require(world.job());
    FashionMnist data;
    if (plan.model == "mlp") {
        data = load_data(world, common);
        if (data.train.image_size() != 784 || data.train.classes > 10)
            throw OptionError(
                "this chapter's --data must have 28 x 28 pixels and at most ten classes.");
        require_batch(plan.batch, data.train.count(), world.world_size());
    }
    if (options.saves())
        return train_from_checkpoints(world, data.train, plan, options.checkpoints);
    world.run([&](Rank& rank) {
        rank.select_device();
        if (options.hybrid)
            return show_hybrid(rank, data.train, plan, options.order, common.csv);
        if (rank.rank() == 0) {
            Device host(0, pinned_memory);
            const auto model = make_stage_model(plan.model, host, plan.batch, plan.seed);
            show_budget(*model, plan, rank.world_size(), beside(common.csv, "bill"));
        }
        show_stages(rank, data.train, plan, options.stages(), common.csv);
        if (options.stage == "all")
            show_timeline(rank, data.train, plan, common);
    });
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    ShardedOptions options;
    Options parser("sharded", "What if the model does not fit? Every rank keeps a part of it.");
    parser.add_choice("--stage", options.stage, {"all", "0", "1", "2", "3"},
                      "which stage trains; 0 is DDP");
    parser.add_choice("--model", options.plan.model, {"mlp", "transformer"},
                      "which model is trained");
    parser.add_int("--steps", options.plan.steps, {1, 100'000}, "of each training");
    parser.with_quick("--steps", [&] { options.plan.steps = 5; });
    parser.add_int("--batch", options.plan.batch, {0, 60'000},
                   "samples per step and rank; 0: 32 pictures, or 4 sentences");
    parser.add_choice("--optimizer", options.plan.optimizer, {"adam", "sgd"},
                      "which optimizer updates the chunks");
    parser.add_double("--clip", options.plan.clip, {1e-6, 1e6}, "clip gradients to this norm");
    parser.add_flag("--bfloat16", options.plan.bfloat16, "stage 3 gathers 16-bit numbers");
    parser.add_taken(
        "--folder", "DIR", "train from the last checkpoint in this folder",
        [&](const std::string& text, CommonOptions&) { options.checkpoints.folder = text; });
    parser.add_int("--every", options.checkpoints.every, {1, 1'000'000},
                   "steps between two checkpoints");
    parser.add_flag("--failover", options.failover, "ranks are killed, and the training goes on");
    parser.add_flag("--hybrid", options.hybrid, "sharded in each node, replicated between nodes");
    options.order.add_to(parser);
    parser.refuse({"--trace"}, "the timeline of a step is drawn, and is in a file beside --csv");
    parser.example("--ranks 3", "a number that divides no layer");
    parser.example("--model transformer --stage 3", "one stage, a unit for each block");
    parser.example("--processes 4 --optimizer sgd", "processes, and one moment in place of two");
    parser.example("--folder run1 --stage 3", "again after Ctrl-C: it goes on");
    parser.example("--hybrid --shape 2x3", "two simulated nodes of three ranks");
    return run_ranks(argc, argv, parser, [&](World& world, const CommonOptions& common) {
        return run(world, common, options);
    });
}
