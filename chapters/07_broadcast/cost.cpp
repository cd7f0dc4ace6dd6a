// The formulas of cost.hpp, and where their terms come from. Four ranks; a letter is a message, or
// a slice of it, and a dot is the latency alpha, in which the sender's port is free:
//
//     linear         0 ▶ 1  .aaaa                 N - 1 messages, one after the other
//                    0 ▶ 2       .bbbb
//                    0 ▶ 3            .cccc
//     all at once    0 ▶ 1  .a  a  a              a slice for each in turn: the latencies of the
//                    0 ▶ 2   .b  b  b             others pass while one is sent
//                    0 ▶ 3    .c  c  c
//     tree           0 ▶ 1  .aaaa                 in each round twice as many ranks send
//                    0 ▶ 2       .bbbb
//                    1 ▶ 3       .cccc
//     chain          0 ▶ 1  .a.a.a                the first slice passes N - 1 ranks, and the
//                    1 ▶ 2    .a.a.a              others follow it at its heels
//                    2 ▶ 3      .a.a.a
#include "07_broadcast/cost.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ddp {

double linear_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    return (ranks - 1) * message.seconds(bytes);
}

double all_at_once_seconds(const CostModel& message, int ranks, std::size_t bytes, int slices) {
    // Either the root's port is busy all the time, or a rank waits for its own next slice.
    const double slice_s = static_cast<double>(bytes) / slices * message.beta_s_per_byte;
    const double round_s = (ranks - 1) * slice_s;  // one slice for each
    return ranks == 1 ? 0
                      : (slices - 1) * std::max(round_s, message.alpha_s + slice_s) +
                            message.alpha_s + round_s;
}

double tree_seconds(const CostModel& message, int ranks, std::size_t bytes) {
    // The rounds: log2(N), rounded up.
    return std::bit_width(static_cast<unsigned int>(ranks - 1)) * message.seconds(bytes);
}

double chain_seconds(const CostModel& message, int ranks, std::size_t bytes, int slices) {
    const double slice_bytes = static_cast<double>(bytes) / slices;
    return ranks == 1
               ? 0
               : (ranks - 2 + slices) * (message.alpha_s + slice_bytes * message.beta_s_per_byte);
}

int best_slices(const CostModel& message, int ranks, std::size_t bytes, int max_slices) {
    // Where the derivative of chain_seconds by `slices` is 0.
    const double waiting_s =
        std::max(0, ranks - 2) * static_cast<double>(bytes) * message.beta_s_per_byte;
    const double slices = waiting_s == 0 ? 1 : std::sqrt(waiting_s / message.alpha_s);
    return static_cast<int>(std::clamp(std::round(slices), 1.0, static_cast<double>(max_slices)));
}

}  // namespace ddp
