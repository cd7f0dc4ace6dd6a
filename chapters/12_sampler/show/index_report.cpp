#include "12_sampler/show/index_report.hpp"

#include <chrono>
#include <iostream>
#include <thread>

#include "12_sampler/mistakes.hpp"
#include "common/data/random.hpp"
#include "common/report/bench.hpp"
#include "common/report/csv.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

// Returns two for each rank, and a remainder.
int samples_with_remainder(int ranks) {
    return 2 * ranks + (ranks > 2 ? 2 : 1);
}

}  // namespace

std::string joined(const std::vector<int>& numbers) {
    std::string text;
    for (int number : numbers)
        text += (text.empty() ? "" : " ") + std::to_string(number);
    return text;
}

void show_integers(Rank& rank, std::uint64_t seed) {
    const DistributedSampler sampler(24, rank.rank(), rank.world_size(), {.seed = seed});
    Random random(seed + static_cast<std::uint64_t>(rank.rank()));
    const Stopwatch watch;
    double sum = 0;
    for (const int integer : sampler.indices()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2 + random.below(18)));
        sum += integer;
    }
    const std::vector<double> times = rank.all_gather(watch.seconds());
    const std::vector<double> averages = rank.all_gather(sum / sampler.samples_per_rank());
    const std::vector<std::string> integers = rank.all_gather(joined(sampler.indices()));
    const double average = rank.mean_over_ranks(sum / sampler.samples_per_rank());
    if (rank.rank() != 0)
        return;
    Table table("24 integers, each rank at its own pace",
                {"rank", "its integers", "average", "time"});
    for (std::size_t r = 0; r < times.size(); r++)
        table.row({std::to_string(r), integers[r], format_fixed(averages[r], 2),
                   format_seconds(times[r])});
    table.note("The average of all is " + format_fixed(average, 1) +
               (sampler.surplus() > 0 ? ": some were dealt out twice." : ", that of 0 to 23."));
    std::cout << table << "\n";
}

void show_remainders(int ranks) {
    const int samples = samples_with_remainder(ranks);
    Table table(
        std::to_string(samples) + " samples do not divide by " + std::to_string(ranks) + " ranks",
        {"rank", "padded", "drop_last", "unpadded"});
    for (int r = 0; r < ranks; r++) {
        const auto indices = [&](bool drop) {
            return joined(DistributedSampler(samples, r, ranks, {false, 0, drop}).indices());
        };
        table.row({std::to_string(r), indices(false), indices(true),
                   joined(unpadded_indices(samples, r, ranks))});
    }
    table.note(
        "Not shuffled, to be easier to read. Padding repeats the front of the order, as in "
        "PyTorch.");
    std::cout << table << "\n";
}

void show_updates(int ranks, std::uint64_t seed) {
    constexpr int updates = 8, batch = 2;
    const int samples = 3 * batch * ranks;  // three batches for each rank
    Table table("Eight updates of rank 0, from " + std::to_string(samples) + " samples, " +
                    std::to_string(batch) + " at a time",
                {"update", "one iterator", "a new one each time", "restarted", "with set_epoch"});
    std::vector<std::vector<std::vector<int>>> columns;
    for (const Counting counting : {Counting::one_iterator, Counting::new_iterators,
                                    Counting::restarted, Counting::restarted_with_set})
        columns.push_back(batches_of(counting, samples, ranks, batch, updates, seed));
    for (std::size_t update = 0; update < updates; update++) {
        std::vector<std::string> cells{std::to_string(update + 1)};
        for (const auto& batches : columns)
            cells.push_back(update < batches.size() ? joined(batches[update]) : "none left");
        table.row(cells);
    }
    std::cout << table << "\n";
}

void write_deals(int ranks, std::uint64_t seed, const std::filesystem::path& csv) {
    CsvWriter file(csv, {"deal", "place", "sample", "rank", "fate"});
    const auto deal = [&](const std::string& name, int samples, int epoch, SamplerOptions options) {
        std::vector<std::vector<int>> dealt;
        for (int r = 0; r < ranks; r++) {
            DistributedSampler sampler(samples, r, ranks, options);
            sampler.set_epoch(epoch);
            dealt.push_back(sampler.indices());
        }
        const int all = static_cast<int>(dealt[0].size()) * ranks;
        for (int place = 0; place < all; place++)
            file.row({name, place,
                      dealt[static_cast<std::size_t>(place % ranks)]
                           [static_cast<std::size_t>(place / ranks)],
                      place % ranks, place < samples ? "once" : "again"});
        for (int left_out = all; left_out < samples; left_out++)  // in the data set's order
            file.row({name, left_out, left_out, -1, "left out"});
    };
    deal("epoch 0", 24, 0, {.seed = seed});
    deal("epoch 1", 24, 1, {.seed = seed});
    const int samples = samples_with_remainder(ranks);
    deal("padded", samples, 0, {.shuffle = false});
    deal("drop_last", samples, 0, {.shuffle = false, .drop_last = true});
}

}  // namespace ddp
