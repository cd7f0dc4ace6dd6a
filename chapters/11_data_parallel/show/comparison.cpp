#include "11_data_parallel/show/comparison.hpp"

#include <algorithm>
#include <iostream>

#include "03_network/models.hpp"
#include "10_nodes/make_communicator.hpp"
#include "11_data_parallel/naive_ddp.hpp"
#include "11_data_parallel/support/drift.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

constexpr double fixed_learning_rate = 0.05;
constexpr int steps_between_drifts = 10;

}  // namespace

// ---- The training runs

Comparison compare_trainings(Rank& rank, const LabelledImages& images,
                             const std::vector<int>& order, const ComparisonOptions& options) {
    auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
    const auto communicator = make_communicator(options.communicator, rank, 32 << 20);
    const int ranks = rank.world_size();
    // `reduce` is called after each backward, and does with the gradients what this run is about.
    const auto learn = [&](int batch, const std::vector<int>& which, double learning_rate,
                           const std::function<void(NaiveDdp&)>& reduce, DriftCurve* curve) {
        Random random(options.seed + static_cast<std::uint64_t>(rank.rank()));  // no two alike
        const auto model = make_mlp(device, random, mlp_widths(images));
        auto& loader =
            make_run_scoped<Loader>(rank, device, images, fashion_mnist_normalisation, batch);
        loader.start_epoch(which);
        NaiveDdp ddp(*communicator, device, *model);
        Drift drift(*communicator, device, *model);
        int step = 0;
        const auto after_backward = [&] {
            if (curve != nullptr && step++ % steps_between_drifts == 0) {
                curve->steps.push_back(step - 1);
                curve->distances.push_back(drift.measure());
                const std::vector<float> biases = model->parameters().back()->value.to_host();
                curve->path.push_back({biases[0], biases[1]});
            }
            reduce(ddp);
        };
        return train(device, *model, loader, after_backward, learning_rate);
    };
    const auto nothing = [](NaiveDdp&) {};
    const auto average = [](NaiveDdp& ddp) { ddp.average_gradients(); };
    const auto sum = [](NaiveDdp& ddp) { ddp.reduce_gradients(ReduceOp::sum); };
    const std::vector<int> mine = shard(order, rank.rank(), ranks);
    const double rate = fixed_learning_rate;
    Comparison result;
    // Each part begins, and allocates, when no rank's kernel of the one before is under way.
    rank.run_part(
        [&] { result.alone = learn(options.batch, mine, rate, nothing, &result.drift_alone); });
    rank.run_part([&] {
        result.averaged = learn(options.batch, mine, rate, average, &result.drift_averaged);
    });
    rank.run_part(
        [&] { result.whole = learn(options.batch * ranks, order, rate, nothing, nullptr); });
    rank.run_part([&] { result.summed = learn(options.batch, mine, rate, sum, nullptr); });
    rank.run_part(
        [&] { result.summed_short = learn(options.batch, mine, rate / ranks, sum, nullptr); });
    return result;
}

namespace {

// Returns the mean of the last 20 losses, or of all if there are fewer.
double last_loss(const std::vector<double>& losses) {
    const std::size_t count = std::min<std::size_t>(20, losses.size());
    double sum = 0;
    for (std::size_t i = losses.size() - count; i < losses.size(); i++)
        sum += losses[i];
    return sum / static_cast<double>(count);
}

void write_losses(const std::filesystem::path& path, const Comparison& comparison,
                  const std::vector<double>& means) {
    CsvWriter csv(path, {"step", "alone", "averaged", "one_rank", "drift_alone", "drift_averaged"});
    std::size_t drift = 0;
    for (std::size_t i = 0; i < means.size(); i++) {
        const auto step = static_cast<int>(i);
        if (drift + 1 < comparison.drift_alone.steps.size() &&
            comparison.drift_alone.steps[drift + 1] <= step)
            drift++;
        csv.row({i + 1, comparison.alone.losses[i], means[i], comparison.whole.losses[i],
                 comparison.drift_alone.distances[drift],
                 comparison.drift_averaged.distances[drift]});
    }
}

// Writes where each replica was. All ranks call it together, and rank 0 writes.
void write_paths(const std::filesystem::path& path, Rank& rank, const Comparison& comparison) {
    CsvWriter csv(rank.rank() == 0 ? path : "", {"gradients", "rank", "step", "bias_0", "bias_1"});
    for (const auto& [gradients, curve] : {std::pair{"alone", &comparison.drift_alone},
                                           std::pair{"averaged", &comparison.drift_averaged}})
        for (std::size_t i = 0; i < curve->steps.size(); i++) {
            const std::vector<TwoBiases> replicas = rank.all_gather(curve->path[i]);
            for (std::size_t r = 0; r < replicas.size(); r++)
                csv.row({gradients, r, curve->steps[i], replicas[r][0], replicas[r][1]});
        }
}

}  // namespace

void show_comparison(Rank& rank, const Comparison& comparison, int batch,
                     const std::filesystem::path& csv) {
    const std::vector<std::uint64_t> alone = rank.all_gather(comparison.alone.hash);
    const std::vector<std::uint64_t> averaged = rank.all_gather(comparison.averaged.hash);
    const std::vector<double> means = mean_of_ranks(rank, comparison.averaged.losses);
    const double summed = last_loss(mean_of_ranks(rank, comparison.summed.losses));
    const double summed_short = last_loss(mean_of_ranks(rank, comparison.summed_short.losses));
    write_paths(beside(csv, "replicas"), rank, comparison);
    if (rank.rank() != 0)
        return;
    Table table("The same network after " + std::to_string(means.size()) + " steps",
                {"rank", "alone", "gradients averaged"});
    for (std::size_t r = 0; r < averaged.size(); r++)
        table.row({std::to_string(r), text_of_hash(alone[r]), text_of_hash(averaged[r])});
    table.note(
        "A hash of all parameters. Every rank began with rank 0's, and learned from its own "
        "samples.");
    // The distance is measured before a step, so this many have been made. In a run of a few steps
    // it was measured before the first one only, and says nothing.
    const int steps = comparison.drift_alone.steps.back();
    const std::string after = " after " + format_count(steps, "step") + " ";
    if (steps > 0)
        table.note("The replicas' parameters differed by " +
                   format_percent(comparison.drift_alone.distances.back()) + after +
                   "alone, and by " + format_percent(comparison.drift_averaged.distances.back()) +
                   after + "with gradients averaged.");
    std::cout << table << "\n";
    const int ranks = rank.world_size();
    std::cout << "The loss of the last steps is " << format_fixed(last_loss(means), 4)
              << " with averaged gradients, " << format_fixed(summed, 4) << " with their sum, and "
              << format_fixed(summed_short, 4) << "\nwith their sum and a learning rate of "
              << format_fixed(fixed_learning_rate / ranks, 4) << " where the others have "
              << format_fixed(fixed_learning_rate, 4) << ".\n\n";
    write_losses(csv, comparison, means);
    const std::size_t first_steps = std::min<std::size_t>(20, means.size());
    std::cout << "The mean loss of " << format_count(ranks, "rank") << " with " << batch
              << " samples each, and the loss of one rank with " << batch * ranks
              << ", differ by\nat most "
              << largest_difference(means, comparison.whole.losses, first_steps) << " in the first "
              << first_steps << " steps";
    if (means.size() > first_steps && ranks > 1)
        std::cout << ", and by at most "
                  << largest_difference(means, comparison.whole.losses, means.size())
                  << " in all steps: rounding errors grow";
    std::cout << ".\n\n";
}

}  // namespace ddp
