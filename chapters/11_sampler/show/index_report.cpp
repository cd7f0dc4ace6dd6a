#include "11_sampler/show/index_report.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <numeric>
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
    const std::vector<double> times = rank.all_gather(watch.seconds());
    const std::vector<long> sums = rank.all_gather(sum);
    const std::vector<std::string> texts = rank.all_gather(joined(sampler.indices()));
    if (rank.rank() != 0)
        return;
    Table table("24 integers on " + format_count(static_cast<int>(sums.size()), "rank"),
                {"rank", "its integers", "their sum", "busy for"});
    for (std::size_t r = 0; r < sums.size(); r++)
        table.row({std::to_string(r), texts[r], std::to_string(sums[r]), format_seconds(times[r])});
    table.note("The sum over all ranks is " +
               std::to_string(std::accumulate(sums.begin(), sums.end(), 0L)) +
               ", and 0 + 1 + ... + 23 = 276" +
               (sampler.surplus() > 0 ? ": some integers were taken twice." : "."));
    std::cout << table << "\n";
}

void show_remainders(int ranks) {
    const int samples = 2 * ranks + (ranks > 2 ? 2 : 1);
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

void show_epochs(int samples, int ranks, std::uint64_t seed) {
    Table table("The first samples of rank 0", {"epoch", "with set_epoch", "without"});
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
