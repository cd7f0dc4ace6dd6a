// Whose mean is it? Cats on one rank, dogs on another, cars on a third: a training with
// BatchNorm, and one with SyncBatchNorm.
#include <algorithm>
#include <iostream>

#include "05_ranks/world.hpp"
#include "18_sync_batch_norm/show/class_per_rank.hpp"
#include "common/report/csv.hpp"
#include "common/report/stats.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

struct SyncOptions {
    int epochs = 10;
    int batch = 16;
};

// Trains both, one epoch of each in turn, so that a slower machine slows both down.
void show_training(Rank& rank, Device& device, const ShapeSets& data, const SyncOptions& options,
                   const CommonOptions& common) {
    ShapeLoaders loaders(rank, device, data, options.batch);
    BatchNormRun plain(rank, device, data, loaders, false, common.seed);
    BatchNormRun synchronised(rank, device, data, loaders, true, common.seed);
    const bool prints = rank.rank() == 0;
    CsvWriter csv(prints ? common.csv : "", {"epoch", "batch_norm_train", "batch_norm_test",
                                             "sync_batch_norm_train", "sync_batch_norm_test"});
    Table table("Accuracy when each rank learns from its own class",
                {"epoch", "BatchNorm: in training", "in the test", "SyncBatchNorm: in training",
                 "in the test"});
    std::vector<double> without, with;
    for (int epoch = 1; epoch <= options.epochs; epoch++) {
        const BatchNormRun::Epoch a = plain.epoch(epoch), b = synchronised.epoch(epoch);
        if (epoch > 1 || options.epochs == 1) {  // the first epoch warms up
            without.push_back(a.seconds);
            with.push_back(b.seconds);
        }
        csv.row({epoch, a.train_accuracy, a.test_accuracy, b.train_accuracy, b.test_accuracy});
        table.row({std::to_string(epoch), format_fixed(a.train_accuracy, 3),
                   format_fixed(a.test_accuracy, 3), format_fixed(b.train_accuracy, 3),
                   format_fixed(b.test_accuracy, 3)});
    }
    if (!prints)
        return;
    const Traffic traffic = synchronised.traffic();
    const int steps = synchronised.steps();
    std::cout << table << "\nSyncBatchNorm adds to a step: " << traffic.collectives / steps
              << " collectives, with " << traffic.bytes / static_cast<std::size_t>(steps)
              << " bytes from each rank.\nA step takes " << format_seconds(median(without))
              << " with BatchNorm and " << format_seconds(median(with)) << " with SyncBatchNorm.\n";
}

int run(World& world, const CommonOptions& common, const SyncOptions& options) {
    ShapeSets data;
    world.prepare([&] {
        data = make_shape_sets(common.quick ? 384 : 1152, common.quick ? 120 : 300, common.seed);
    });
    const std::size_t most = own_pictures(data.train, 0, world.world_size()).size();
    if (static_cast<std::size_t>(options.batch) > most)
        throw OptionError("--batch " + std::to_string(options.batch) + " is more than the " +
                          std::to_string(most) + " pictures that each of " +
                          std::to_string(world.world_size()) +
                          " ranks has: take a smaller batch or fewer ranks.");
    world.run([&](Rank& rank) {
        rank.select_device();
        auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
        rank.run_part([&] { show_statistics(rank, device, data.train, options.batch); });
        show_training(rank, device, data, options, common);
    });
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    SyncOptions options;
    Options parser("sync_batch_norm", "Whose mean is it? Batch normalisation over all ranks.");
    parser.add_int("--epochs", options.epochs, {1, 1000}, "how often to see each picture");
    parser.with_quick("--epochs", [&] { options.epochs = 2; });
    parser.add_int("--batch", options.batch, {2, 64}, "pictures per step and rank");
    parser.refuse({"--trace"}, "the timeline of a step is in 15_overlap");
    parser.refuse({"--data"}, "the pictures are drawn");
    parser.example("--ranks 3", "one class on each rank");
    return run_ranks(argc, argv, parser, [&](World& world, const CommonOptions& common) {
        return run(world, common, options);
    });
}
