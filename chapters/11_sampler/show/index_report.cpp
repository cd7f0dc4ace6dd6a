#include "11_sampler/show/index_report.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "11_sampler/sampler.hpp"
#include "common/data/random.hpp"
#include "common/report/bench.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"

namespace ddp {

std::string joined(const std::vector<int>& numbers) {
    std::string text;
    for (int number : numbers)
        text += (text.empty() ? "" : " ") + std::to_string(number);
    return text;
}

void show_integers(Rank& rank, std::uint64_t seed) {
    constexpr int integers = 24;
    const DistributedSampler sampler(integers, rank.rank(), rank.world_size(), {.seed = seed});
    Random random(seed + static_cast<std::uint64_t>(rank.rank()));
    const Stopwatch watch;
    long sum = 0;
    for (int integer : sampler.indices()) {
        std::this_thread::sleep_for(std::chrono::microseconds(2000 + random.below(18'000)));
        sum += integer;
    }
    const std::string busy = format_seconds(watch.seconds());
    const auto parts = rank.all_gather(joined(sampler.indices()));
    const auto times = rank.all_gather(busy);
    const auto sums = rank.all_gather(std::to_string(sum));
    if (rank.rank() != 0)
        return;
    Table table("24 integers on " + format_count(static_cast<int>(parts.size()), "rank"),
                {"rank", "its integers", "their sum", "busy for"});
    long all = 0;
    for (std::size_t r = 0; r < parts.size(); r++) {
        table.row({std::to_string(r), parts[r], sums[r], times[r]});
        all += std::stol(sums[r]);
    }
    table.note("All together: " + std::to_string(all) + ", where 0 + 1 + ... + 23 = 276" +
               (sampler.surplus() > 0 ? ", and some were taken twice." : "."));
    std::cout << table << "\n";
}

void show_remainders(int ranks) {
    const int samples = 2 * ranks + (ranks > 2 ? 2 : 1);
    Table table(
        std::to_string(samples) + " samples do not divide by " + std::to_string(ranks) + " ranks",
        {"rank", "padded", "drop_last", "unpadded"});
    for (int r = 0; r < ranks; r++) {
        const auto part = [&](bool drop) {
            return joined(DistributedSampler(samples, r, ranks, {false, 0, drop}).indices());
        };
        table.row({std::to_string(r), part(false), part(true),
                   joined(unpadded_indices(samples, r, ranks))});
    }
    table.note("Not shuffled, to be read. Padded: as PyTorch, from the front.");
    std::cout << table << "\n";
}

void show_epochs(int samples, int ranks, std::uint64_t seed) {
    Table table("The first samples of rank 0", {"epoch", "with set_epoch", "forgotten"});
    DistributedSampler right(samples, 0, ranks, {.seed = seed}), wrong = right;
    for (int epoch = 0; epoch < 3; epoch++) {
        right.set_epoch(epoch);
        std::vector<int> mine = right.indices(), same = wrong.indices();
        mine.resize(std::min<std::size_t>(mine.size(), 5));
        same.resize(mine.size());
        table.row({std::to_string(epoch), joined(mine), joined(same)});
    }
    std::cout << table << "\n";
}

}  // namespace ddp
