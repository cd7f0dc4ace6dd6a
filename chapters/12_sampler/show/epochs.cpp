#include "12_sampler/show/epochs.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "03_network/loader.hpp"
#include "03_network/models.hpp"
#include "03_network/training.hpp"
#include "09_all_reduce/all_reduce.hpp"
#include "10_nodes/make_communicator.hpp"
#include "11_data_parallel/training_result.hpp"
#include "common/report/bench.hpp"
#include "common/report/units.hpp"

namespace ddp {

std::string text_of(Division division) {
    switch (division) {
        case Division::sampler:
            return "the sampler";
        case Division::forgotten:
            return "no sampler";
        default:
            return "each rank shuffles for itself";
    }
}

std::vector<int> divided(Division division, int samples, int rank, int world_size,
                         std::uint64_t seed) {
    switch (division) {
        case Division::sampler:
            return DistributedSampler(samples, rank, world_size, {.seed = seed}).indices();
        case Division::forgotten:
            return random_permutation(samples, seed);
        default:
            return DistributedSampler(samples, rank, world_size,
                                      {.seed = seed + static_cast<std::uint64_t>(rank)})
                .indices();
    }
}

Coverage coverage_of(Division division, int samples, int batch, int world_size,
                     std::uint64_t seed) {
    std::vector<int> times(static_cast<std::size_t>(samples));
    Coverage coverage;
    for (int rank = 0; rank < world_size; rank++) {
        const std::vector<int> indices = divided(division, samples, rank, world_size, seed);
        coverage.steps = (static_cast<int>(indices.size()) + batch - 1) / batch;
        for (int i : indices)
            times[static_cast<std::size_t>(i)]++;
    }
    coverage.missed = static_cast<int>(std::ranges::count(times, 0));
    coverage.seen = samples - coverage.missed;
    coverage.twice =
        static_cast<int>(std::ranges::count_if(times, [](int seen) { return seen > 1; }));
    return coverage;
}

// ---- An epoch of training

namespace {

constexpr std::size_t arena_bytes = 32 << 20;

std::unique_ptr<Sequential> make_network(Device& device, std::uint64_t seed) {
    Random random(seed);
    return make_mlp(device, random);
}

}  // namespace

EpochTraining::EpochTraining(Rank& rank, Device& device, const FashionMnist& data, int batch,
                             std::uint64_t seed)
    : rank_(rank),
      data_(data),
      batch_(batch),
      device_(device),
      model_(make_network(device_, seed)),
      communicator_(make_communicator("native", rank, arena_bytes)),
      ddp_(*communicator_, device_, *model_) {}

Epoch EpochTraining::learn(const std::vector<int>& indices, Gradients gradients) {
    auto& loader =
        make_run_scoped<Loader>(rank_, device_, data_.train, fashion_mnist_normalisation, batch_);
    loader.start_epoch(indices);
    model_->set_training(true);
    rank_.barrier();
    const Stopwatch watch;
    const TrainingResult result = train(device_, *model_, loader, [&] {
        if (gradients == Gradients::averaged)
            ddp_.average_gradients();
    });
    const double seconds = watch.seconds();
    rank_.barrier();  // a rank that goes on may allocate: no kernel is under way any more
    return {static_cast<int>(result.losses.size()), seconds};
}

Metrics::Totals EpochTraining::measure(const std::vector<int>& indices) {
    auto& loader =
        make_run_scoped<Loader>(rank_, device_, data_.test, fashion_mnist_normalisation, batch_);
    loader.start_epoch(indices);
    return add_up(rank_, evaluate(device_, *model_, loader));
}

double largest_difference(const EpochTraining& a, const EpochTraining& b) {
    const Parameters left = a.model().parameters(), right = b.model().parameters();
    double largest = 0;
    for (std::size_t p = 0; p < left.size(); p++) {
        const std::vector<float> mine = left[p]->value.to_host(),
                                 theirs = right[p]->value.to_host();
        for (std::size_t i = 0; i < mine.size(); i++)
            largest = std::max(largest, std::abs(static_cast<double>(mine[i]) - theirs[i]));
    }
    return largest;
}

void show_no_sampler(Rank& rank, Device& device, const FashionMnist& data, int batch,
                     std::uint64_t seed) {
    const int ranks = rank.world_size();
    const int steps = std::min(10, static_cast<int>(data.train.count()) / batch);
    const std::vector<int> indices = divided(Division::forgotten, steps * batch, 0, ranks, seed);
    EpochTraining together(rank, device, data, batch, seed), alone(rank, device, data, batch, seed);
    together.learn(indices);
    alone.learn(indices, Gradients::own);
    const double difference = rank.max_over_ranks(largest_difference(together, alone));
    if (rank.rank() == 0)
        std::cout << "Without a sampler, " << format_count(ranks, "rank") << " after "
                  << format_count(steps, "step") << " and one rank that trained alone: parameters"
                  << "\ndiffer by at most " << difference << ".\n\n";
}

// ---- Uneven inputs

void train_unevenly(Rank& rank, int batches) {
    constexpr std::size_t parameters = 1000;
    constexpr double timeout_s = 1;
    Peers peers(rank, 1 << 16, timeout_s);
    ArenaBuffer<float> gradient = peers.allocate<float>(parameters);
    gradient.copy_from(std::vector<float>(parameters, 1));
    rank.barrier();
    Stream stream;
    for (int batch = 0; batch < batches; batch++)
        two_shot_all_reduce(peers, gradient.data(), gradient.data(), parameters, ReduceOp::average,
                            stream, "gradients of batch " + std::to_string(batch + 1));
    peers.synchronize(stream);
    rank.barrier();
}

}  // namespace ddp
