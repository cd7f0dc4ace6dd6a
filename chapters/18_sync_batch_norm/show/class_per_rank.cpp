#include "18_sync_batch_norm/show/class_per_rank.hpp"

#include <algorithm>
#include <iostream>

#include "03_network/layers/conv2d.hpp"
#include "03_network/layers/without_parameters.hpp"
#include "03_network/linear.hpp"
#include "10_nodes/make_communicator.hpp"
#include "common/report/bench.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr int classes = static_cast<int>(shape_classes.size());

bool has_class(int rank, int world_size, int label) {
    return world_size < classes ? label % world_size == rank : rank % classes == label;
}

// Returns the rank's pictures, before they are cut to the number that every rank has.
std::vector<int> pictures_of(const LabelledImages& images, int rank, int world_size) {
    int sharers = 1, place = 0;  // the number of ranks with this class, and this rank's among them
    if (world_size > classes) {
        sharers = (world_size - rank % classes + classes - 1) / classes;
        place = rank / classes;
    }
    std::vector<int> all;
    for (int i = 0; i < static_cast<int>(images.count()); i++)
        if (has_class(rank, world_size, images.labels[static_cast<std::size_t>(i)]))
            all.push_back(i);
    return shard(all, place, sharers);
}

}  // namespace

// ---- Data

std::vector<int> own_pictures(const LabelledImages& images, int rank, int world_size) {
    std::size_t fewest = images.count();
    for (int r = 0; r < world_size; r++)
        fewest = std::min(fewest, pictures_of(images, r, world_size).size());
    std::vector<int> own = pictures_of(images, rank, world_size);
    own.resize(fewest);
    return own;
}

std::string own_classes(int rank, int world_size) {
    std::string names;
    for (int label = 0; label < classes; label++)
        if (has_class(rank, world_size, label))
            names += (names.empty() ? "" : " and ") +
                     std::string(shape_classes[static_cast<std::size_t>(label)]) + "s";
    return names;
}

ShapeSets make_shape_sets(int train, int test, std::uint64_t seed) {
    return {make_shapes(static_cast<std::size_t>(train), seed),
            make_shapes(static_cast<std::size_t>(test), seed + 1)};
}

// ---- Training

std::unique_ptr<Sequential> make_shape_network(Device& device, Random& random) {
    auto network = std::make_unique<Sequential>("shapes");
    network->add<Conv2d>("conv1", device, Conv2dShape{1, 8, 3, 1, 1}, random);
    network->add<BatchNorm2d>("norm1", device, 8);
    network->add<Relu>("relu1");
    network->add<MaxPool2d>("pool1", 4);
    network->add<Conv2d>("conv2", device, Conv2dShape{8, 16, 3, 1, 1}, random);
    network->add<BatchNorm2d>("norm2", device, 16);
    network->add<Relu>("relu2");
    network->add<MaxPool2d>("pool2", 4);
    network->add<Flatten>("flatten");
    network->add<Linear>("linear", device, 16 * 2 * 2, classes, random);
    return network;
}

namespace {

constexpr double learning_rate = 0.01;
constexpr int test_batch = 100;

std::unique_ptr<Sequential> make_network(Device& device, std::uint64_t seed) {
    Random random(seed);
    return make_shape_network(device, random);
}

}  // namespace

ShapeLoaders::ShapeLoaders(Rank& rank, Device& device, const ShapeSets& data, int batch)
    : train(make_run_scoped<Loader>(rank, device, data.train, as_they_are, batch, LastBatch::drop)),
      test(make_run_scoped<Loader>(rank, device, data.test, as_they_are,
                                   std::min(test_batch, static_cast<int>(data.test.count())))) {}

BatchNormRun::BatchNormRun(Rank& rank, Device& device, const ShapeSets& data, ShapeLoaders& loaders,
                           bool is_synchronised, std::uint64_t seed)
    : rank_(rank),
      seed_(seed),
      own_(own_pictures(data.train, rank.rank(), rank.world_size())),
      loaders_(loaders),
      model_(make_network(device, seed)),
      communicator_(make_communicator(
          "native", rank,
          ddp_arena_bytes(*model_) + sync_batch_norm_arena_bytes(*model_, rank.world_size()))),
      converted_(is_synchronised ? convert_sync_batch_norm(*model_, *communicator_)
                                 : std::vector<SyncBatchNorm*>()),
      ddp_(*communicator_, device, *model_),
      optimizer_(model_->parameters(), learning_rate),
      trainer_(rank, device, *model_, ddp_, optimizer_) {}

BatchNormRun::Epoch BatchNormRun::epoch(int number) {
    std::vector<int> mine;
    for (const int place : shuffled(static_cast<int>(own_.size()), seed_, number))
        mine.push_back(own_[static_cast<std::size_t>(place)]);
    loaders_.train.start_epoch(mine);
    Epoch epoch;
    epoch.steps = loaders_.train.batches();
    rank_.barrier();
    const Stopwatch watch;
    epoch.train_accuracy =
        trainer_.epoch(loaders_.train, "epoch " + std::to_string(number)).accuracy();
    epoch.seconds = watch.seconds() / epoch.steps;
    epoch.test_accuracy = trainer_.test(loaders_.test).accuracy();
    return epoch;
}

Traffic BatchNormRun::traffic() const {
    Traffic all;
    for (const SyncBatchNorm* norm : converted_) {
        all.collectives += norm->traffic().collectives;
        all.bytes += norm->traffic().bytes;
    }
    return all;
}

// ---- Statistics

namespace {

struct Statistics {
    double mean, variance;
};

// Returns mean and variance of the layer's first batch, computed back from its running averages.
Statistics statistics_of(Module& norm, Device& device, Loader& loader, std::vector<int> which) {
    loader.start_epoch(std::move(which));
    Tape tape(device);
    norm.forward(tape.constant(loader.next()->images));
    const auto running = [&](std::size_t i) -> double {
        return norm.buffers().at(i).value.to_host().at(0);
    };
    // They began as 0 and 1, and one tenth of them is new.
    constexpr double momentum = BatchNorm2d::momentum;
    return {running(0) / momentum, (running(1) - (1 - momentum)) / momentum};
}

}  // namespace

void show_statistics(Rank& rank, Device& device, const LabelledImages& images, int batch) {
    const int ranks = rank.world_size();
    const auto mine = [&](int r) {
        std::vector<int> own = own_pictures(images, r, ranks);
        own.resize(std::min(own.size(), static_cast<std::size_t>(batch)));
        return own;
    };
    std::vector<int> all;
    for (int r = 0; r < ranks; r++)
        for (const int i : mine(r))
            all.push_back(i);
    auto& loader =
        make_run_scoped<Loader>(rank, device, images, as_they_are, static_cast<int>(all.size()));
    const auto communicator = make_communicator("native", rank, 1 << 20);
    const auto make = [&] { return std::make_unique<BatchNorm2d>("norm", device, 1); };
    const auto alone = make(), whole = make();
    SyncBatchNorm synchronised(make(), *communicator);
    const auto own = mine(rank.rank());
    const auto plain = rank.all_gather(statistics_of(*alone, device, loader, own));
    const auto over_ranks = rank.all_gather(statistics_of(synchronised, device, loader, own));
    communicator->synchronize(device.stream());  // throws if a collective has failed
    const Statistics one = statistics_of(*whole, device, loader, all);
    if (rank.rank() != 0)
        return;
    Table table("Brightness of the first " + std::to_string(mine(0).size()) +
                    " pictures of each rank, as a normalisation sees it",
                {"rank", "sees", "BatchNorm: mean", "variance", "SyncBatchNorm: mean", "variance"});
    for (int r = 0; r < ranks; r++) {
        const auto i = static_cast<std::size_t>(r);
        table.row({std::to_string(r), own_classes(r, ranks), format_fixed(plain[i].mean, 5),
                   format_fixed(plain[i].variance, 5), format_fixed(over_ranks[i].mean, 5),
                   format_fixed(over_ranks[i].variance, 5)});
    }
    table.note("BatchNorm on one rank with the pictures of all: mean " + format_fixed(one.mean, 5) +
               ", variance " + format_fixed(one.variance, 5) + ".");
    std::cout << table << "\n";
}

}  // namespace ddp
