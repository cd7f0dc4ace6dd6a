// From which size on does an all-reduce that moves fewer bytes beat one with fewer messages? Alpha
// and beta are fitted by ping-pong and put into the formulas of cost.hpp; both algorithms are
// measured around the size that these predict, over a link and in memory.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <string_view>

#include "05_ranks/cores.hpp"
#include "05_ranks/world.hpp"
#include "07_broadcast/show/algorithms.hpp"
#include "09_all_reduce/cost.hpp"
#include "09_all_reduce/support/algorithms.hpp"
#include "common/report/csv.hpp"
#include "common/report/stats.hpp"
#include "common/report/table.hpp"
#include "common/report/units.hpp"
#include "tests/bench/09_all_reduce/candidates.hpp"

namespace {

using namespace ddp;

constexpr std::size_t longest_array = 1 << 20;  // bytes

const AllReduceAlgorithm<float>& algorithm_called(
    const std::vector<AllReduceAlgorithm<float>>& algorithms, std::string_view name) {
    return *std::ranges::find(algorithms, name, &AllReduceAlgorithm<float>::name);
}

// Returns sizes from an eighth to four times of what the link carries within its latency: there it
// is decided. Multiples of 64 bytes, each once.
std::vector<std::size_t> sizes_around(const LinkSpeed& link) {
    std::vector<std::size_t> sizes;
    for (double share = 0.125; share <= 4; share *= 2) {
        const double bytes = share * link.latency_s * link.bytes_per_second;
        sizes.push_back(64 *
                        std::clamp<std::size_t>(std::lround(bytes / 64), 1, longest_array / 64));
    }
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    return sizes;
}

// Returns the least of three measurements: other work on the machine can only add to the link's
// time.
double least_of_runs(Peers& peers, const AllReduceAlgorithm<float>& algorithm, AllReduceData& data,
                     std::size_t bytes) {
    double least = INFINITY;
    for (int round = 0; round < 3; round++)
        least = std::min(least, seconds_of_one(peers, algorithm, data, bytes / sizeof(float)));
    return least;
}

// Says where one size stands among those that were measured.
std::string in_words(double bytes, std::size_t shortest, std::size_t longest) {
    if (bytes == 0)
        return "below " + format_bytes(static_cast<double>(shortest));
    if (std::isinf(bytes))
        return "above " + format_bytes(static_cast<double>(longest));
    return format_bytes(bytes);
}

// Adds one line: two ways, and what the model and the measurements say of them.
void add_line(Table& table, const std::string& where, const CostModel& message, int ranks,
              const AllReduceAlgorithm<float>& small, const AllReduceAlgorithm<float>& large,
              const std::vector<CrossOverPair>& pairs) {
    const double predicted =
        predicted_cross_over(small.predicted_seconds, large.predicted_seconds, message, ranks);
    table.row({where, format_seconds(message.alpha_s),
               message.beta_s_per_byte == 0 ? "none seen"  // other work hid it
                                            : format_bandwidth(1 / message.beta_s_per_byte),
               large.name + " beats " + small.name,
               predicted == 0          ? "always"
               : std::isinf(predicted) ? "never"
                                       : format_bytes(predicted),
               in_words(measured_cross_over(pairs), pairs.front().bytes, pairs.back().bytes)});
}

// Adds the line of the link of `common`, or one of 100 MB/s and 1 ms: ring against reduce +
// broadcast, whose runs it writes to `file`.
void add_link(Table& table, Rank& rank, const CommonOptions& common, CsvWriter& file) {
    const int ranks = rank.world_size();
    const LinkSpeed link = common.link.value_or(LinkSpeed{100e6, 1e-3});
    Peers peers(rank, 4 * longest_array, {}, link);
    const CostModel message = measure_messages(peers, longest_array, common.quick ? 1 : 3);
    AllReduceData data(peers, longest_array / sizeof(float));
    const auto algorithms = all_reduce_algorithms<float>(peers, longest_array / sizeof(float));
    const AllReduceAlgorithm<float>& small = algorithm_called(algorithms, "reduce+broadcast");
    const AllReduceAlgorithm<float>& large = algorithm_called(algorithms, "ring");
    std::vector<CrossOverPair> pairs;
    for (const std::size_t bytes : sizes_around(link)) {
        pairs.push_back({bytes, least_of_runs(peers, small, data, bytes),
                         least_of_runs(peers, large, data, bytes)});
        const auto write = [&](const AllReduceAlgorithm<float>& algorithm, double seconds) {
            file.row({algorithm.name, ranks, bytes, seconds,
                      algorithm.predicted_seconds(message, ranks, bytes),
                      bus_bandwidth(ranks, bytes, seconds)});
        };
        write(small, pairs.back().small_s);
        write(large, pairs.back().large_s);
    }
    if (rank.rank() == 0)  // which knows what a message costs
        add_line(table, "the link", message, ranks, small, large, pairs);
}

// Measures one-shot and two-shot in memory, one beside the other.
std::vector<CrossOverPair> shots_in_memory(Rank& rank, int rounds) {
    std::vector<std::size_t> sizes;
    for (std::size_t bytes = 4 << 10; bytes <= longest_array; bytes *= 4)
        sizes.push_back(bytes);
    std::vector<std::shared_ptr<Candidate>> shots =
        make_candidates(rank, longest_array / sizeof(float));
    std::erase_if(shots,
                  [](const auto& candidate) { return !candidate->name().ends_with("-shot"); });
    const std::vector<AllReduceMeasurement> measurements = compare(rank, sizes, rounds, shots);
    std::vector<CrossOverPair> pairs;
    for (const AllReduceMeasurement& small : measurements)
        for (const AllReduceMeasurement& large : measurements)
            if (small.algorithm == "one-shot" && large.algorithm == "two-shot" &&
                small.bytes == large.bytes)
                pairs.push_back({small.bytes, median(small.batches), median(large.batches)});
    return pairs;
}

void add_memory(Table& table, Rank& rank, bool is_quick) {
    const std::vector<CrossOverPair> pairs = shots_in_memory(rank, is_quick ? 1 : 3);
    Peers peers(rank, 4 * longest_array);
    const CostModel message = measure_messages(peers, longest_array, is_quick ? 10 : 60);
    const auto algorithms = all_reduce_algorithms<float>(peers, longest_array / sizeof(float));
    if (rank.rank() == 0)
        add_line(table, "memory", message, rank.world_size(),
                 algorithm_called(algorithms, "one-shot"), algorithm_called(algorithms, "two-shot"),
                 pairs);
}

void show_cross_overs(Rank& rank, const CommonOptions& common) {
    rank.select_device();
    Table table(
        "From which size on? Alpha and beta fitted by ping-pong, and what they predict",
        {"through", "alpha", "1 / beta", "who beats whom", "predicted from", "measured from"});
    CsvWriter file(
        rank.rank() == 0 ? common.csv : "",
        {"algorithm", "ranks", "bytes", "seconds", "expected_seconds", "bus_bytes_per_second"});
    add_link(table, rank, common, file);
    if (!common.link) {
        add_memory(table, rank, common.quick);
        if (const int cores = usable_cores(); kernels_run_on_cpu && cores < rank.world_size())
            table.note("In memory " + std::to_string(rank.world_size()) + " ranks share " +
                       std::to_string(cores) +
                       " cores, and wait for their turns: the model knows nothing of that.");
        table.note("The link is simulated: 100 MB/s and 1 ms.");
    }
    if (rank.rank() == 0)
        std::cout << table;
}

}  // namespace

int main(int argc, char** argv) {
    Options parser("bench_cross_overs", "From which size on does one all-reduce beat another?");
    parser.refuse({"--seed", "--data", "--trace"}, "nothing here is random, read or timed so");
    parser.example("--ranks 8", "eight ranks, whose tree has one step more");
    parser.example("--link 100MB/s,5ms", "another link, and no memory");
    return run_ranks(argc, argv, parser, [](World& world, const CommonOptions& common) {
        if (world.world_size() == 1)
            throw OptionError("One rank has nobody to sum with: try --ranks 4.");
        if (world.job().has_several_nodes())
            throw OptionError(
                "These ranks are on several nodes, and this bench measures kernels that reach one "
                "only: ./book bench nodes.");
        world.run([&](Rank& rank) { show_cross_overs(rank, common); });
        return 0;
    });
}
