#include "07_broadcast/cost.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ddp {

double linear_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    return (ranks - 1) * message.seconds(bytes);
}

double all_at_once_seconds(const CostModel& message, int ranks, std::size_t bytes, int slices) {
    const double slice_s = static_cast<double>(bytes) / slices * message.beta_s_per_byte;
    const double round_s = (ranks - 1) * slice_s;  // one slice for each
    return ranks == 1 ? 0
                      : (slices - 1) * std::max(round_s, message.alpha_s + slice_s) +
                            message.alpha_s + round_s;
}

double tree_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    return std::bit_width(static_cast<unsigned int>(ranks - 1)) * message.seconds(bytes);
}

double chain_seconds(const CostModel& message, int ranks, std::size_t bytes, int slices) {
    const double slice_bytes = static_cast<double>(bytes) / slices;
    return ranks == 1
               ? 0
               : (ranks - 2 + slices) * (message.alpha_s + slice_bytes * message.beta_s_per_byte);
}

int best_slices(const CostModel& message, int ranks, std::size_t bytes, int most) {
    const double waiting_s =
        std::max(0, ranks - 2) * static_cast<double>(bytes) * message.beta_s_per_byte;
    const double slices = waiting_s == 0 ? 1 : std::sqrt(waiting_s / message.alpha_s);
    return static_cast<int>(std::clamp(std::round(slices), 1.0, static_cast<double>(most)));
}

}  // namespace ddp
