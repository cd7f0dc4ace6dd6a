// Who trains on what? The samples of an epoch, divided among ranks correctly and
// wrongly.
#include <algorithm>
#include <iostream>

#include "03_network/models.hpp"
#include "05_ranks/world.hpp"
#include "09_all_reduce/all_reduce.hpp"
#include "11_data_parallel/replica.hpp"
#include "12_sampler/mistakes.hpp"
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
        "An epoch of " + format_count(samples) + " samples on " + format_count(ranks, "rank"),
        {"division", "steps", "time", "seen", "more than once", "missed", "test accuracy"});
    CsvWriter csv(rank.rank() == 0 ? common.csv : "",
                  {"division", "steps", "seconds", "seen", "twice", "missed", "accuracy"});
    const auto show = [&](Division division) {
        const Coverage all = coverage_of(division, samples, batch, ranks, common.seed);
        const Epoch epoch =
            learn(rank, device, data.train,
                  divided(division, samples, rank.rank(), ranks, common.seed), batch, common.seed);
        const double accuracy =
            measure(rank, device, *epoch.model, data.test, pictures, batch).accuracy();
        table.row({to_string(division), format_count(epoch.steps), format_seconds(epoch.seconds),
                   format_count(all.seen), format_count(all.twice), format_count(all.missed),
                   format_fixed(accuracy, 3)});
        if (rank.rank() == 0)
            csv.row({to_string(division), epoch.steps, epoch.seconds, all.seen, all.twice,
                     all.missed, accuracy});
    };
    for (Division division : divisions)
        rank.run_part([&] { show(division); });
    if (rank.rank() == 0)
        std::cout << table << "\n";
}

// Calls an all-reduce for each of this rank's `batches` batches, as data parallel training does. If
// another rank has a different number, the run fails after a second.
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

int run(World& world, const CommonOptions& common, int batch) {
    const FashionMnist data = load_data(world, common);
    const int samples = std::min(common.quick ? 300 : 12'000, static_cast<int>(data.train.count()));
    const int ranks = world.world_size();
    world.run([&](Rank& rank) {
        rank.select_device();
        show_integers(rank, common.seed);
        if (rank.rank() == 0) {
            if (ranks > 1)
                show_remainders(ranks);
            show_updates(ranks, common.seed);
            write_deals(ranks, common.seed, beside(common.csv, "dealt"));
        }
        auto& device = make_run_scoped<Device>(rank, rank_memory(rank));
        show_divisions(rank, device, data, samples, batch, common);
        show_no_sampler(rank, device, data.train, batch, common.seed);
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
    Options parser("sampler", "Who trains on what? Samples, divided among ranks.");
    parser.add_int("--batch", batch, {1, 256}, "samples per step and rank");
    parser.refuse({"--link", "--trace"},
                  "this chapter neither simulates a link nor draws a timeline");
    parser.example("--ranks 2", "two ranks");
    return run_ranks(argc, argv, parser, [&](World& world, const CommonOptions& common) {
        return run(world, common, batch);
    });
}
