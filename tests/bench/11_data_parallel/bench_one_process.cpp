// Measures a step that one process makes for all replicas, beside one that every rank makes for
// itself.
#include <algorithm>
#include <iostream>

#include "03_network/layers/small_training.hpp"
#include "03_network/models.hpp"
#include "05_ranks/world.hpp"
#include "10_nodes/make_communicator.hpp"
#include "11_data_parallel/naive_ddp.hpp"
#include "11_data_parallel/one_process.hpp"
#include "11_data_parallel/training_result.hpp"
#include "common/report/bench.hpp"
#include "common/report/stats.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

constexpr double fixed_learning_rate = 0.05;

struct OneProcessOptions {
    int steps = 20;
    int batch = 32;
};

// Returns the first samples, and the first again where there are too few of them.
std::vector<int> first_samples(int count, const LabelledImages& images) {
    std::vector<int> samples;
    for (int i = 0; i < count; i++)
        samples.push_back(i % static_cast<int>(images.count()));
    return samples;
}

// Returns the mean seconds of a step in which every rank drives its own replica.
double time_ranks(Rank& rank, const LabelledImages& images, const OneProcessOptions& options,
                  std::uint64_t seed) {
    auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
    const auto communicator = make_communicator("native", rank, 32 << 20);
    Random random(seed);
    const auto model = make_mlp(device, random, mlp_widths(images));
    NaiveDdp ddp(*communicator, device, *model);
    auto& loader =
        make_run_scoped<Loader>(rank, device, images, fashion_mnist_normalisation, options.batch);
    loader.start_epoch(first_samples(options.steps * options.batch, images));
    rank.barrier();
    const double seconds =
        train(
            device, *model, loader, [&] { ddp.average_gradients(); }, fixed_learning_rate)
            .step_s;
    rank.barrier();
    return seconds;
}

struct Phases {
    double whole, replicate, compute, gather;  // median seconds of a step
};

// Measures the phases of a step of DataParallel with as many replicas as there are ranks, all
// driven by rank 0. The others wait for each step in a barrier of its own: a wait for all of them
// could exceed the time-out.
Phases time_one_process(Rank& rank, const LabelledImages& images, const OneProcessOptions& options,
                        std::uint64_t seed) {
    const int replicas = rank.world_size(), batch = options.batch * replicas;
    if (rank.rank() != 0) {
        for (int step = 0; step <= options.steps; step++)
            rank.barrier();
        return {};
    }
    auto& device = make_run_scoped<Device>(rank);
    Random random(seed);
    const auto model = make_mlp(device, random, mlp_widths(images));
    const auto make = [&](Device& other) { return make_mlp(other, random, mlp_widths(images)); };
    DataParallel data_parallel(device, *model, replicas, make);
    Sgd optimizer(model->parameters(), fixed_learning_rate);
    SmallTraining training(device, optimizer);
    Loader loader(device, images, fashion_mnist_normalisation, batch);
    loader.start_epoch(first_samples((options.steps + 1) * batch, images));
    std::vector<double> replicate, compute, gather, whole;
    while (const std::optional<Batch> samples = loader.next()) {
        const Stopwatch watch;
        training.step([&] { data_parallel.learn(*samples); });
        device.stream().synchronize();
        whole.push_back(watch.seconds());
        replicate.push_back(data_parallel.last_step().replicate);
        compute.push_back(data_parallel.last_step().compute);
        gather.push_back(data_parallel.last_step().gather);
        rank.barrier();
    }
    for (std::vector<double>* times : {&replicate, &compute, &gather, &whole})
        times->erase(times->begin());  // the first step warms up
    return {median(whole), median(replicate), median(compute), median(gather)};
}

void compare(Rank& rank, const LabelledImages& images, const OneProcessOptions& options,
             std::uint64_t seed) {
    rank.select_device();
    const double ranks = time_ranks(rank, images, options, seed);
    const Phases one = time_one_process(rank, images, options, seed);
    if (rank.rank() != 0)
        return;
    Table table("A step of " + std::to_string(rank.world_size()) + " replicas with " +
                    std::to_string(options.batch) + " samples each",
                {"driven by", "the step", "replicate", "compute", "gather"});
    table.row({"one process for all", format_seconds(one.whole), format_seconds(one.replicate),
               format_seconds(one.compute), format_seconds(one.gather)});
    table.row({"one rank for each", format_seconds(ranks), "", "", ""});
    std::cout << table << "\n";
}

}  // namespace

int main(int argc, char** argv) {
    OneProcessOptions options;
    Options parser("bench_one_process",
                   "One process for all devices, beside one rank for each: what is a step?");
    parser.add_int("--steps", options.steps, {1, 10'000}, "steps to measure");
    parser.with_quick("--steps", [&] { options.steps = 3; });
    parser.add_int("--batch", options.batch, {1, 10'000}, "samples per step and replica");
    parser.refuse({"--link", "--trace"}, "this bench prints one table");
    parser.example("--ranks 2 --batch 64", "two replicas");
    return run_ranks(argc, argv, parser, [&](World& world, const CommonOptions& common) {
        const LabelledImages images = load_data(world, common).train;
        require_batch(options.batch * world.world_size(), images);
        world.run([&](Rank& rank) { compare(rank, images, options, common.seed); });
        return 0;
    });
}
