#include "09_all_reduce/cost.hpp"

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

}  // namespace ddp
