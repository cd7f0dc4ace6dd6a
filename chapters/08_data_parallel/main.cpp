// Chapter 08: what keeps replicas the same? Every rank learns from its own samples: alone, and with
// gradients that all ranks average; and one rank learns from the samples of all.
#include <algorithm>
#include <iostream>

#include "03_network/dataset.hpp"
#include "03_network/models.hpp"
#include "04_ranks/world.hpp"
#include "08_data_parallel/course.hpp"
#include "08_data_parallel/naive_ddp.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

struct DataParallelOptions {
    int steps = 200;
    int batch = 32;
    std::string communicator = "own";
};

// The same for all ranks.
std::vector<int> samples_of_all(const LabelledImages& images, const DataParallelOptions& mine,
                                int ranks, std::uint64_t seed) {
    std::vector<int> order = shuffled(static_cast<int>(images.count()), seed, 1);
    const std::int64_t samples = std::int64_t{mine.steps} * mine.batch * ranks;
    if (samples > std::ssize(order))
        throw OptionError(std::to_string(mine.steps) + " steps of " + std::to_string(mine.batch) +
                          " samples on " + std::to_string(ranks) + " ranks are more than the " +
                          std::to_string(order.size()) + " pictures: take fewer --steps.");
    order.resize(static_cast<std::size_t>(samples));
    return order;
}

struct Comparison {
    Course alone, together, whole;
};

Comparison compare(Rank& rank, const LabelledImages& images, const std::vector<int>& order,
                   const DataParallelOptions& mine, std::uint64_t seed) {
    rank.select_device();
    auto& device = make_kept<Device>(rank, rank_memory);
    const auto communicator = make_communicator(mine.communicator, rank, 32 << 20);
    const auto learn = [&](int batch, const std::vector<int>& which, bool averages) {
        Random random(seed + static_cast<std::uint64_t>(rank.rank()));  // all differ
        const auto model = make_mlp(device, random);
        auto& loader = make_kept<Loader>(rank, device, images, fashion_mnist_normalisation, batch);
        loader.start_epoch(which);
        NaiveDdp ddp(*communicator, device, *model);
        return train(device, *model, loader, [&] {
            if (averages)
                ddp.average_gradients();
        });
    };
    const int ranks = rank.world_size();
    const std::vector<int> own = shard(order, rank.rank(), ranks);
    return {learn(mine.batch, own, false), learn(mine.batch, own, true),
            learn(mine.batch * ranks, order, false)};
}

void report(Rank& rank, const Comparison& courses, int batch, const std::filesystem::path& path) {
    const auto alone = rank.all_gather(text_of_hash(courses.alone.hash));
    const auto together = rank.all_gather(text_of_hash(courses.together.hash));
    const std::vector<double> means = mean_of_ranks(rank, courses.together.losses);
    if (rank.rank() != 0)
        return;
    Table table("The same network after " + std::to_string(means.size()) + " steps",
                {"rank", "alone", "gradients averaged"});
    for (std::size_t r = 0; r < together.size(); r++)
        table.row({std::to_string(r), alone[r], together[r]});
    table.note(
        "A hash of all parameters. All began with rank 0's; each learned from its own part.");
    std::cout << table << "\n";
    CsvWriter csv(path, {"step", "alone", "averaged", "one_rank"});
    for (std::size_t i = 0; i < means.size(); i++)
        csv.row({i + 1, courses.alone.losses[i], means[i], courses.whole.losses[i]});
    const int ranks = rank.world_size();
    std::cout << "The mean loss of " << ranks << " ranks with " << batch
              << " samples each, and the loss of one rank with " << batch * ranks << ", differ by\n"
              << largest_difference(means, courses.whole.losses, 20)
              << " at most in the first 20 steps, and then by "
              << largest_difference(means, courses.whole.losses, means.size())
              << ": roundings grow.\nA step of " << ranks
              << " ranks: " << format_seconds(courses.alone.step_s) << " alone, "
              << format_seconds(courses.together.step_s)
              << " with gradients averaged one by one.\n";
}

int run(int argc, char** argv) {
    DataParallelOptions mine;
    Options options("data_parallel", "What keeps replicas the same? The MLP on Fashion-MNIST.");
    options.add_int("--steps", mine.steps, {1, 60'000}, "of each training");
    options.add_int("--batch", mine.batch, {1, 60'000}, "samples a step and rank");
    options.add_choice("--communicator", mine.communicator, {"own", "mpi", "nccl"},
                       "who carries the gradients");
    options.refuse({"--trace"}, "the timeline of a step comes in chapter 12");
    options.example("--ranks 2 --batch 64", "two ranks");
    const CommonOptions common = options.parse(argc, argv);
    if (const std::optional<int> status = launch_processes(common, argv))
        return *status;
    World world(common);
    if (common.quick)
        mine.steps = std::min(mine.steps, 20);
    LabelledImages images;
    world.prepare([&] { images = load_data(common).train; });
    const std::vector<int> order = samples_of_all(images, mine, world.world_size(), common.seed);
    world.run([&](Rank& rank) {
        report(rank, compare(rank, images, order, mine, common.seed), mine.batch, common.csv);
    });
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    return ddp::run_world_main([&] { return run(argc, argv); });
}
