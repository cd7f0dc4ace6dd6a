// Who trains on what? The samples of an epoch, divided among ranks correctly and
// wrongly.
#include <algorithm>
#include <iostream>

#include "03_network/models.hpp"
#include "05_ranks/world.hpp"
#include "12_sampler/show/epochs.hpp"
#include "12_sampler/show/index_report.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace {

using namespace ddp;

constexpr Division divisions[] = {Division::sampler, Division::forgotten, Division::own_shuffles};

// Trains for one epoch with each division, and prints which samples were seen, how long it took and
// what the network has learned. All ranks call it together.
void show_divisions(Rank& rank, Device& device, const FashionMnist& data, int samples, int batch,
                    const CommonOptions& common) {
    const int ranks = rank.world_size();
    const int pictures = static_cast<int>(data.test.count()) / (common.quick ? 4 : 1);
    Table table(
        "An epoch of " + format_count(samples) + " pictures on " + format_count(ranks, "rank"),
        {"division", "steps", "time", "seen", "more than once", "missed", "test accuracy"});
    CsvWriter csv(rank.rank() == 0 ? common.csv : "",
                  {"division", "steps", "seconds", "seen", "twice", "missed", "accuracy"});
    for (Division division : divisions) {
        const Coverage all = coverage_of(division, samples, batch, ranks, common.seed);
        EpochTraining training(rank, device, data, batch, common.seed);
        const Epoch epoch =
            training.learn(divided(division, samples, rank.rank(), ranks, common.seed));
        const double accuracy =
            training.measure(unpadded_indices(pictures, rank.rank(), ranks)).accuracy();
        table.row({text_of(division), format_count(epoch.steps), format_seconds(epoch.seconds),
                   format_count(all.seen), format_count(all.twice), format_count(all.missed),
                   format_fixed(accuracy, 3)});
        if (rank.rank() == 0)
            csv.row({text_of(division), epoch.steps, epoch.seconds, all.seen, all.twice, all.missed,
                     accuracy});
    }
    if (rank.rank() == 0)
        std::cout << table << "\n";
}

// Measures one network on a number of pictures that is no multiple of the number of ranks, with
// padding and without. All ranks call it together.
void show_metrics(Rank& rank, Device& device, const FashionMnist& data, int batch, bool is_quick,
                  std::uint64_t seed) {
    const int ranks = rank.world_size();
    const int pictures = std::min(10 * ranks + 1, static_cast<int>(data.test.count()));
    const int samples =
        std::min((is_quick ? 16 : 64) * batch, static_cast<int>(data.train.count()));
    EpochTraining training(rank, device, data, batch, seed);
    training.learn(divided(Division::sampler, samples, rank.rank(), ranks, seed));
    const auto padded = DistributedSampler(pictures, rank.rank(), ranks, {.shuffle = false});
    Table table("The accuracy on " + std::to_string(pictures) + " test pictures",
                {"indices", "counted", "correct", "accuracy"});
    const auto row = [&](const std::string& name, const Metrics::Totals& totals) {
        table.row({name, std::to_string(totals.samples), std::to_string(totals.correct),
                   format_fixed(totals.accuracy(), 4)});
    };
    row("padded", training.measure(padded.indices()));
    row("unpadded", training.measure(unpadded_indices(pictures, rank.rank(), ranks)));
    if (rank.rank() == 0)
        std::cout << table << "\n";
}

int run(World& world, const CommonOptions& common, int batch) {
    FashionMnist data;
    world.prepare([&] { data = load_data(common); });
    const int pictures = static_cast<int>(data.train.count());
    const int samples = std::min(common.quick ? 300 : 12'000, pictures);
    const int ranks = world.world_size();
    world.run([&](Rank& rank) {
        rank.select_device();
        show_integers(rank, common.seed);
        if (rank.rank() == 0) {
            if (ranks > 1)
                show_remainders(ranks);
            show_epochs(pictures, ranks, common.seed);
            show_updates(ranks, common.seed);
            write_deals(ranks, common.seed, beside(common.csv, "dealt"));
        }
        auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
        show_divisions(rank, device, data, samples, batch, common);
        show_metrics(rank, device, data, batch, common.quick, common.seed);
        show_no_sampler(rank, device, data, batch, common.seed);
    });
    if (ranks == 1)
        return 0;
    try {
        world.run([](Rank& rank) { train_unevenly(rank, rank.rank() == 0 ? 4 : 3); });
        throw std::logic_error("an all-reduce that only rank 0 called went through");
    } catch (const RunFailed& failure) {  // on purpose
        if (world.has_rank_0())
            std::cout << "Rank 0 has one batch more than the others:\n    " << failure.what()
                      << "\n";
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    int batch = 32;
    Options options("sampler", "Who trains on what? Samples, divided among ranks.");
    options.add_int("--batch", batch, {1, 256}, "pictures per step and rank");
    options.refuse({"--link", "--trace"},
                   "this chapter neither simulates a link nor draws a timeline");
    options.example("--ranks 2", "two ranks");
    return run_ranks(argc, argv, options, [&](World& world, const CommonOptions& common) {
        return run(world, common, batch);
    });
}
