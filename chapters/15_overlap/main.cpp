// The book's main job: a network learns Fashion-MNIST on several ranks, whose
// gradients are reduced bucket by bucket while backward runs.
#include <algorithm>
#include <iostream>

#include "03_network/layers/fused_optimizers.hpp"
#include "03_network/layers/linear_relu.hpp"
#include "03_network/models.hpp"
#include "05_ranks/world.hpp"
#include "10_nodes/make_communicator.hpp"
#include "15_overlap/graphed_step.hpp"
#include "15_overlap/show/linked_steps.hpp"
#include "15_overlap/show/timeline_report.hpp"
#include "15_overlap/show/training_report.hpp"
#include "15_overlap/support/overlap_options.hpp"
#include "15_overlap/training.hpp"

namespace {

using namespace ddp;

constexpr int test_batch = 500;

// Trains on every rank. Rank 0 keeps the timelines of two steps in `watched`.
void train(Rank& rank, const FashionMnist& data, const OverlapOptions& options,
           const CommonOptions& common, TwoSteps& watched) {
    rank.select_device();
    auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
    auto& train = make_run_scoped<Loader>(rank, device, data.train, fashion_mnist_normalisation,
                                          options.batch, LastBatch::drop);
    auto& test = make_run_scoped<Loader>(rank, device, data.test, fashion_mnist_normalisation,
                                         std::min(test_batch, static_cast<int>(data.test.count())));
    // Every rank draws other parameters; DistributedDataParallel replaces them by rank 0's.
    Random random(common.seed + static_cast<std::uint64_t>(rank.rank()));
    const auto model = make_model(options.model, device, random, data.train);
    fuse_linear_relu(*model);
    const auto communicator = make_communicator(options.communicator, rank,
                                                ddp_arena_bytes(*model) + hook_arena_bytes(*model),
                                                {.order = options.order});
    const std::optional cap = static_cast<std::size_t>(options.cap) << 20;
    DistributedDataParallel ddp(*communicator, device, *model,
                                {.bucket_cap_bytes = options.default_caps ? std::nullopt : cap,
                                 .overlap = !options.no_overlap,
                                 .check_finite = options.detect_anomaly});
    ddp.set_bucket_hook(make_hook(options.hook, rank, *communicator, ddp.gradients()));
    FusedSgd optimizer(model->parameters(), options.learning_rate);
    DdpTrainer trainer(rank, device, *model, ddp, optimizer);
    const int steps = train.samples() / rank.world_size() / options.batch * options.epochs;
    // By then all is warm. A graph begins after the two watched steps.
    const int watched_step = std::clamp(steps - 2, 0, options.graph ? 2 : 20);
    StepWatch watch(rank, device, *model, ddp, trainer, watched_step);
    GraphedStep* graphed = nullptr;
    if (options.graph)
        graphed = &make_run_scoped<GraphedStep>(rank, trainer, *communicator, device, optimizer,
                                                watched_step + 2);
    TrainingReport report(rank.rank() == 0, common.csv);
    for (int epoch = 1; epoch <= options.epochs; epoch++) {
        // Long steps first, to get near; short ones at the end, to settle.
        optimizer.set_learning_rate(options.learning_rate * (options.epochs - epoch + 1) /
                                    options.epochs);
        train.start_epoch(
            shard(shuffled(train.samples(), common.seed, epoch), rank.rank(), rank.world_size()));
        const Metrics::Totals trained = trainer.epoch(train, "epoch " + std::to_string(epoch));
        const Metrics::Totals tested = trainer.test(test);
        if (options.hook != "noop")  // which lets them drift apart
            require_equal_replicas(rank, model->parameters());
        report.add(epoch, trainer.steps(), trained, tested);
    }
    report.finish(rank, model->parameters(), options.order, options.hook != "noop");
    if (rank.rank() != 0)
        return;
    if (graphed != nullptr)
        std::cout << graphed->summary() << ".\n\n";
    show_memory(device, model->parameters(), ddp.gradients().plan());
    watched = watch.steps();
}

int run(World& world, const CommonOptions& common, const OverlapOptions& options) {
    options.require(world.job());
    const FashionMnist data = load_data(world, common);
    require_batch(options.batch, data.train.count(), world.world_size());
    Trace trace(world.has_rank_0() ? common.trace : "");
    TwoSteps watched;
    world.run([&](Rank& rank) { train(rank, data, options, common, watched); });
    show_linked_steps(world, common);
    if (world.has_rank_0())
        show_watched_steps(watched, common, trace);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    OverlapOptions options;
    Options parser("overlap",
                   "Can communication hide behind computation? Fashion-MNIST on several ranks.");
    options.add_to(parser);
    parser.example("--ranks 2 --cap 1 --trace step.json", "a timeline for ui.perfetto.dev");
    parser.example("--processes 4", "ranks that are processes");
    parser.example("--cap 1 --link 400MB/s,100us", "over a simulated link");
    return run_ranks(argc, argv, parser, [&](World& world, const CommonOptions& common) {
        return run(world, common, options);
    });
}
