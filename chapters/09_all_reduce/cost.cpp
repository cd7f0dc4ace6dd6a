#include "09_all_reduce/cost.hpp"

#include <cmath>

#include "07_broadcast/cost.hpp"
#include "08_reduce/tree_reduce.hpp"

namespace ddp {
namespace {

// `meetings` latencies, and `chunks` of the N that the data is cut into.
double seconds(const CostModel& message, int ranks, std::size_t bytes, int meetings, int chunks) {
    const double chunk_bytes = static_cast<double>(bytes) / ranks;
    return meetings * message.alpha_s + chunks * chunk_bytes * message.beta_s_per_byte;
}

}  // namespace

double parameter_server_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    return 2 * linear_seconds(message, ranks, bytes);
}

double reduce_broadcast_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    return tree_reduce_seconds(message, ranks, bytes) + tree_seconds(message, ranks, bytes);
}

double ring_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    const int steps = 2 * (ranks - 1);
    return seconds(message, ranks, bytes, steps, steps);
}

double two_shot_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    return seconds(message, ranks, bytes, ranks == 1 ? 0 : 2, 2 * (ranks - 1));
}

double one_shot_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    return seconds(message, ranks, bytes, ranks == 1 ? 0 : 1, ranks * (ranks - 1));
}

// ---- From which size on

double predicted_cross_over(PredictedSeconds small, PredictedSeconds large,
                            const CostModel& message, int ranks) {
    const auto pays = [&](std::size_t bytes) {
        return large(message, ranks, bytes) <= small(message, ranks, bytes);
    };
    std::size_t behind = 0, ahead = std::size_t{1} << 30;
    if (pays(1))
        return 0;
    if (!pays(ahead))
        return INFINITY;
    while (ahead - behind > 1)
        (pays(behind + (ahead - behind) / 2) ? ahead : behind) = behind + (ahead - behind) / 2;
    return static_cast<double>(ahead);
}

double measured_cross_over(std::span<const CrossOverPair> pairs) {
    std::size_t next = pairs.size();  // behind the last size at which `small` is the faster one
    while (next > 0 && pairs[next - 1].large_s <= pairs[next - 1].small_s)
        next--;
    if (next == 0 || next == pairs.size())
        return next == 0 ? 0 : INFINITY;
    const CrossOverPair &before = pairs[next - 1], &after = pairs[next];
    const double lead = std::log(before.large_s / before.small_s);
    const double lag = std::log(after.small_s / after.large_s);
    const auto from = static_cast<double>(before.bytes), to = static_cast<double>(after.bytes);
    return from * std::pow(to / from, lead / (lead + lag));
}

}  // namespace ddp
