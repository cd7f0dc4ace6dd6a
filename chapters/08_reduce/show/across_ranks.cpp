#include "08_reduce/show/across_ranks.hpp"

#include <cmath>
#include <numeric>
#include <stdexcept>

#include "05_ranks/world.hpp"
#include "07_broadcast/show/pace.hpp"
#include "08_reduce/show/partial_sums.hpp"
#include "08_reduce/tree_reduce.hpp"
#include "common/report/bench.hpp"
#include "common/report/units.hpp"

namespace ddp {
namespace {

// Returns the seconds until rank 0 has the sum of `bytes` of floats from every rank.
double measure_tree_reduce(Rank& rank, const LinkSpeed& link, std::size_t bytes) {
    rank.select_device();
    Peers peers(rank, 2 * bytes, {}, link);
    Stream stream;
    ArenaBuffer<float> gradients = peers.allocate<float>(bytes / sizeof(float));
    std::vector<float> host(gradients.size());
    std::iota(host.begin(), host.end(), static_cast<float>(rank.rank()));
    gradients.copy_from(host);
    rank.barrier();
    const Stopwatch watch;
    tree_reduce(peers, static_cast<const float*>(gradients.data()), gradients.data(), host.size(),
                ReduceOp::sum, 0, stream, "gradients");
    peers.synchronize(stream);
    rank.barrier();
    const double seconds = watch.seconds();
    const std::vector<float> sum = gradients.to_host_now();
    const int ranks = rank.world_size();
    for (std::size_t i = 0; i < sum.size() && rank.rank() == 0; i++)
        if (const double expected = ranks * (static_cast<double>(i) + 0.5 * (ranks - 1));
            std::abs(sum[i] - expected) > 1e-5 * expected)
            throw std::runtime_error("tree reduce: element " + std::to_string(i) + " is wrong");
    return seconds;
}

// In another job every rank has gradients of 5 MB. The run is faster than the line of 1 MB/s.
// `shows_sums`: prints who holds what as well. Returns whether rank 0, which prints, is one of this
// process's.
bool add_job(Table& table, Pace& pace, const CommonOptions& options, bool shows_sums) {
    constexpr double faster = 100, bytes_per_second = 1e6;
    constexpr std::size_t bytes = 5'000'000;
    World world(options);
    const int ranks = world.world_size();
    if (world.job().has_several_nodes()) {
        table.note("These ranks are on several nodes, and kernels do not reach so far.");
        return world.has_rank_0();
    }
    if (shows_sums && ranks > 1 && ranks <= max_ranks_of_partial_sums)
        world.run(show_partial_sums);
    double measured = 0;
    world.run([&](Rank& rank) {
        const double seconds = measure_tree_reduce(rank, {faster * bytes_per_second, 0}, bytes);
        if (rank.rank() == 0)
            measured = faster * seconds;
    });
    const double predicted = tree_reduce_seconds({0, 1 / bytes_per_second}, ranks, bytes);
    if (ranks > 1 && world.has_rank_0())
        pace.add(measured, predicted, ranks);
    table.row({std::to_string(ranks), format_seconds(predicted), format_seconds(measured),
               ranks == 1 ? "n/a" : format_percent(measured / predicted - 1), tree_order(ranks)});
    return world.has_rank_0();
}

}  // namespace

std::optional<Table> sum_across_ranks(const CommonOptions& options) {
    Table table("Across ranks: gradients of 5 MB from each to one, at 1 MB/s, in log2(N) steps",
                {"ranks", "predicted", "measured", "difference", "order of the sum"});
    table.note("The link is simulated, and runs 100 times as fast.");
    Pace pace;
    bool has_rank_0 = true;
    if (options.ranks || find_starter(options) != StartedBy::none)
        has_rank_0 = add_job(table, pace, options, true);
    else
        for (int ranks : {2, 3, 4, 8}) {
            CommonOptions job = options;
            job.ranks = ranks;
            add_job(table, pace, job, ranks == 4);
        }
    pace.warn();
    return has_rank_0 ? std::optional(table) : std::nullopt;
}

}  // namespace ddp
