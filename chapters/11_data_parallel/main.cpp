// What keeps replicas the same? Every rank learns from its own samples, first alone and
// then with averaged gradients. One rank that learns from all samples is the comparison.
#include <algorithm>
#include <iostream>

#include "03_network/loader.hpp"
#include "03_network/models.hpp"
#include "05_ranks/world.hpp"
#include "10_nodes/make_communicator.hpp"
#include "11_data_parallel/averages.hpp"
#include "11_data_parallel/replica.hpp"
#include "11_data_parallel/show/comparison.hpp"
#include "11_data_parallel/show/small_numbers.hpp"

namespace {

using namespace ddp;

constexpr std::size_t small_memory = 1 << 20;

struct DataParallelOptions {
    int steps = 200;
    int batch = 32;
    std::string communicator = "native";
};

// Returns the samples of all ranks and steps, in the same order on every rank. Throws OptionError
// if there are too few.
std::vector<int> samples_of_all(const LabelledImages& images, const DataParallelOptions& options,
                                int ranks, std::uint64_t seed) {
    std::vector<int> order = shuffled(static_cast<int>(images.count()), seed, 1);
    const std::int64_t samples = std::int64_t{options.steps} * options.batch * ranks;
    if (samples > std::ssize(order))
        throw OptionError(std::to_string(options.steps) + " steps of " +
                          std::to_string(options.batch) + " samples on " + std::to_string(ranks) +
                          " ranks need more than the " + std::to_string(order.size()) +
                          " there are: use fewer --steps.");
    order.resize(static_cast<std::size_t>(samples));
    return order;
}

// Shows the chapter's idea with small numbers: one step by hand, and averages of a metric.
void show_small(Rank& rank, const std::string& kind) {
    rank.select_device();
    auto& device = make_run_scoped<Device>(rank, small_memory);
    const auto communicator = make_communicator(kind, rank, small_memory);
    show_first_step(*communicator, device);
    show_averages(*communicator, device.stream());
}

// Rank 0 calls a collective that the other ranks do not call, on purpose; then all ranks call it.
void show_rank_0_only(World& world) {
    try {
        world.run([](Rank& rank) { validate_on_rank_0(rank, false); });
        throw std::logic_error("a collective that rank 0 called alone went through");
    } catch (const RunFailed& failure) {
        if (world.has_rank_0())
            std::cout << "A collective inside `if (rank == 0)`:\n    " << failure.what() << "\n";
    }
    world.run([](Rank& rank) { validate_on_rank_0(rank, true); });
    if (world.has_rank_0())
        std::cout << "Every rank calls it, and rank 0 prints: it goes through.\n";
}

int run(World& world, const CommonOptions& common, const DataParallelOptions& options) {
    const LabelledImages images = load_data(world, common).train;
    const std::vector<int> order = samples_of_all(images, options, world.world_size(), common.seed);
    world.run([&](Rank& rank) { show_small(rank, options.communicator); });
    world.run([&](Rank& rank) {
        rank.select_device();
        const Comparison comparison = compare_trainings(
            rank, images, order, {options.batch, options.communicator, common.seed});
        show_comparison(rank, comparison, options.batch, common.csv);
    });
    if (world.world_size() > 1 && !world.job().has_several_nodes())  // its kernels need one node
        show_rank_0_only(world);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    DataParallelOptions options;
    Options parser("data_parallel", "What keeps replicas the same? The MLP on Fashion-MNIST.");
    parser.add_int("--steps", options.steps, {1, 60'000}, "steps of each training run");
    parser.with_quick("--steps", [&] { options.steps = 12; });
    parser.add_int("--batch", options.batch, {1, 60'000}, "samples per step and rank");
    parser.add_choice("--communicator", options.communicator, {"native", "mpi", "nccl"},
                      "what reduces the gradients");
    parser.refuse({"--trace"}, "the timeline of a step comes in 15_overlap");
    parser.example("--ranks 2 --batch 64", "two ranks");
    return run_ranks(argc, argv, parser, [&](World& world, const CommonOptions& common) {
        return run(world, common, options);
    });
}
