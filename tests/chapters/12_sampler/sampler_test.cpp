// The indices of the samplers: those of PyTorch, and what must hold in any order.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>

#include "12_sampler/mistakes.hpp"
#include "12_sampler/show/index_report.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/golden.hpp"

namespace ddp::test {
namespace {

// Returns how often all ranks together see each sample.
std::vector<int> times_seen(int samples, int ranks, SamplerOptions options, int epoch = 0) {
    std::vector<int> times(static_cast<std::size_t>(samples));
    for (int rank = 0; rank < ranks; rank++) {
        DistributedSampler sampler(samples, rank, ranks, options);
        sampler.set_epoch(epoch);
        const std::vector<int> indices = sampler.indices();
        REQUIRE(std::ssize(indices) == sampler.samples_per_rank());
        for (int i : indices)
            times.at(static_cast<std::size_t>(i))++;
    }
    return times;
}

// Returns row `k` of a tensor of whole numbers.
std::vector<int> row_of(const GoldenTensor& tensor, std::size_t k) {
    const std::size_t width = tensor.shape[1];
    const float* row = tensor.values.data() + k * width;
    return {row, row + width};
}

struct Case {
    int samples, ranks, rank, epoch, indices;
    SamplerOptions options;

    explicit Case(const std::vector<int>& row)
        : samples(row[0]),
          ranks(row[1]),
          rank(row[2]),
          epoch(row[5]),
          indices(row[8]),
          options{row[7] == 1,
                  static_cast<std::uint64_t>(row[3]) * 65536 + static_cast<std::uint64_t>(row[4]),
                  row[6] == 1} {}

    std::vector<int> made() const {
        DistributedSampler sampler(samples, rank, ranks, options);
        sampler.set_epoch(epoch);
        return sampler.indices();
    }
};

}  // namespace

TEST_CASE("200 samplers give the indices of PyTorch's") {
    const Golden golden = read_golden("samplers.txt");
    const GoldenTensor& settings = golden.tensor("settings");
    REQUIRE(settings.shape == std::vector<std::size_t>{200, 9});
    int padded = 0, dropped = 0, repeated = 0;
    auto next = golden.tensor("indices").values.begin();  // those of case k
    for (std::size_t k = 0; k < 180; k++) {
        const Case each(row_of(settings, k));
        const std::vector<int> made = each.made();
        CAPTURE(k, each.samples, each.ranks, each.rank, each.options.drop_last);
        REQUIRE(std::ssize(made) == each.indices);
        REQUIRE(golden.tensor("indices").values.end() - next >= each.indices);
        REQUIRE(made == std::vector<int>(next, next + each.indices));
        next += each.indices;
        const bool divides = each.samples % each.ranks == 0;
        padded += !divides && !each.options.drop_last;
        dropped += !divides && each.options.drop_last;
        repeated += 2 * each.samples <= each.ranks && !each.options.drop_last;
    }
    REQUIRE(next == golden.tensor("indices").values.end());
    REQUIRE((padded > 40 && dropped > 30 && repeated > 0));  // the file has every kind
    const GoldenTensor& large = golden.tensor("large");
    for (std::size_t i = 0; i < 20; i++) {
        const std::vector<int> theirs = row_of(large, i);
        REQUIRE(theirs[0] == static_cast<int>(180 + i));
        const Case each(row_of(settings, 180 + i));
        const std::vector<int> made = each.made();
        CAPTURE(each.samples, each.ranks);
        REQUIRE(std::ssize(made) == each.indices);
        REQUIRE(std::equal(theirs.begin() + 1, theirs.begin() + 9, made.begin()));
        std::int64_t sum = 0;
        for (std::size_t j = 0; j < made.size(); j++)
            sum += static_cast<std::int64_t>(j + 1) * made[j];
        REQUIRE(sum % 65521 == theirs[9]);
    }
}

TEST_CASE("padded, every sample is seen; dropped, none is seen twice; ranks have equally many") {
    for (int ranks : {1, 2, 3, 4, 8})
        for (int samples : {1, 2, 3, 7, 8, 9, 24, 100})
            for (bool shuffle : {false, true}) {
                CAPTURE(ranks, samples, shuffle);
                const std::vector<int> padded = times_seen(samples, ranks, {shuffle, 3, false});
                REQUIRE(std::ranges::min(padded) >= 1);
                const int surplus = std::accumulate(padded.begin(), padded.end(), 0) - samples;
                REQUIRE(surplus < ranks);
                REQUIRE(DistributedSampler(samples, 0, ranks, {shuffle, 3, false}).surplus() ==
                        surplus);
                const std::vector<int> dropped = times_seen(samples, ranks, {shuffle, 3, true});
                REQUIRE(std::ranges::max(dropped) <= 1);
                REQUIRE(std::ranges::count(dropped, 0) == samples % ranks);
                REQUIRE(DistributedSampler(samples, 0, ranks, {shuffle, 3, true}).surplus() ==
                        -(samples % ranks));
            }
}

TEST_CASE("an epoch is another order of the same samples, and without set_epoch it is the same") {
    DistributedSampler sampler(1000, 1, 4);
    const std::vector<int> first = sampler.indices();
    REQUIRE(sampler.indices() == first);
    sampler.set_epoch(1);
    REQUIRE(sampler.indices() != first);
    sampler.set_epoch(0);
    REQUIRE(sampler.indices() == first);
    REQUIRE(times_seen(1000, 4, {}, 7) == std::vector<int>(1000, 1));
    DistributedSampler other(1000, 1, 4, {.seed = 1});
    sampler.set_epoch(1);
    REQUIRE(other.indices() == sampler.indices());  // seed + epoch, as PyTorch
}

TEST_CASE("with one rank it is PyTorch's RandomSampler, or its SequentialSampler") {
    for (const int samples : {1, 7, 100}) {
        DistributedSampler shuffled(samples, 0, 1, {.seed = 5}),
            ordered(samples, 0, 1, {.shuffle = false});
        shuffled.set_epoch(3);
        REQUIRE(shuffled.indices() == random_permutation(samples, 5 + 3));
        std::vector<int> all(static_cast<std::size_t>(samples));
        std::iota(all.begin(), all.end(), 0);
        REQUIRE(ordered.indices() == all);
    }
}

TEST_CASE("for a measurement every sample counts once, with any remainder") {
    for (int ranks : {1, 2, 3, 5, 8})
        for (int samples : {0, 1, 4, 7, 41}) {
            std::vector<int> all;
            for (int rank = 0; rank < ranks; rank++)
                for (int i : unpadded_indices(samples, rank, ranks))
                    all.push_back(i);
            std::ranges::sort(all);
            std::vector<int> each(static_cast<std::size_t>(samples));
            std::iota(each.begin(), each.end(), 0);
            CAPTURE(ranks, samples);
            REQUIRE(all == each);
        }
}

TEST_CASE("an accuracy over padded samples is another one: the repeated samples count twice") {
    for (const int ranks : {2, 3, 4, 8}) {
        // Right are the first W - 1 pictures only, which padding repeats.
        const int pictures = 10 * ranks + 1;
        int padded = 0, padded_right = 0, counted = 0, right = 0;
        for (int rank = 0; rank < ranks; rank++) {
            for (const int i :
                 DistributedSampler(pictures, rank, ranks, {.shuffle = false}).indices())
                padded++, padded_right += i < ranks - 1;
            for (const int i : unpadded_indices(pictures, rank, ranks))
                counted++, right += i < ranks - 1;
        }
        CAPTURE(ranks);
        REQUIRE((padded == 11 * ranks && padded_right == 2 * (ranks - 1)));
        REQUIRE((counted == pictures && right == ranks - 1));
    }
}

TEST_CASE("the samples that wrong divisions see") {
    const Coverage right = coverage_of(Division::sampler, 1000, 10, 4, 0);
    REQUIRE((right.steps == 25 && right.seen == 1000 && right.twice == 0 && right.missed == 0));
    const Coverage forgotten = coverage_of(Division::forgotten, 1000, 10, 4, 0);
    REQUIRE((forgotten.steps == 100 && forgotten.seen == 1000 && forgotten.twice == 1000));
    // Each rank takes a quarter at random: (3/4)^4 of all are missed.
    const Coverage own = coverage_of(Division::own_shuffles, 10'000, 10, 4, 0);
    REQUIRE(own.steps == 250);
    REQUIRE(own.missed == Approx(10'000 * 0.316).epsilon(0.05));
    REQUIRE(own.seen + own.missed == 10'000);
}

TEST_CASE("impossible samplers are refused") {
    REQUIRE_THROWS_WITH(DistributedSampler(0, 0, 2),
                        "a sampler needs a sample; this data set has 0");
    REQUIRE_THROWS_WITH(DistributedSampler(5, 2, 2), "there is no rank 2 in a world of 2");
}

TEST_CASE("updates: a loader runs out, begins with the same batch, or goes on with other epochs") {
    constexpr int samples = 24, ranks = 4, batch = 2, updates = 8;
    const auto batches = [&](Counting counting) {
        return batches_of(counting, samples, ranks, batch, updates, 1);
    };
    const auto right = batches(Counting::restarted_with_set);
    REQUIRE(right.size() == 8);
    for (int update = 0; update < updates; update++) {
        DistributedSampler sampler(samples, 0, ranks, {.seed = 1});
        sampler.set_epoch(update / 3);
        const std::vector<int> epoch = sampler.indices();
        const auto begin = epoch.begin() + update % 3 * batch;
        REQUIRE(right[static_cast<std::size_t>(update)] == std::vector<int>(begin, begin + batch));
    }
    const auto once = batches(Counting::one_iterator);
    REQUIRE(once.size() == 3);
    REQUIRE(std::equal(once.begin(), once.end(), right.begin()));
    const auto restarted = batches(Counting::restarted);
    for (std::size_t update = 0; update < 8; update++)
        REQUIRE(restarted.at(update) == once[update % 3]);
    REQUIRE(batches(Counting::new_iterators) == std::vector<std::vector<int>>(8, once[0]));
}

TEST_CASE("deals: the picture's file has each sample once, those taken again, and those left out") {
    const std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("deals_" + std::to_string(getpid()) + ".csv");
    write_deals(4, 1, path);
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);)
        lines.push_back(line);
    std::filesystem::remove(path);
    REQUIRE(lines.size() == 1 + 24 + 24 + 12 + 10);
    const DistributedSampler sampler(24, 2, 4, {.seed = 1});
    for (std::size_t k = 0; k < 6; k++)  // rank 2 takes places 2, 6, 10, ...
        REQUIRE(lines[1 + 2 + 4 * k] == "epoch 0," + std::to_string(2 + 4 * k) + "," +
                                            std::to_string(sampler.indices()[k]) + ",2,once");
    REQUIRE(lines[1 + 48 + 9] == "padded,9,9,1,once");
    REQUIRE(lines[1 + 48 + 10] == "padded,10,0,2,again");
    REQUIRE(lines[1 + 48 + 12 + 7] == "drop_last,7,7,3,once");
    REQUIRE(lines[1 + 48 + 12 + 8] == "drop_last,8,8,-1,left out");
}

}  // namespace ddp::test
