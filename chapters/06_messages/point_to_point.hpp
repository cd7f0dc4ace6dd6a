#pragma once
// How fast is a message? Ping-pong between two ranks, and the straight line through what was
// measured: seconds = alpha + bytes * beta.
#include <cstddef>
#include <span>
#include <vector>

#include "06_messages/peers.hpp"

namespace ddp {

// One size's measurement.
struct MessageTime {
    std::size_t bytes = 0;
    double seconds = 0;  // from one rank to the other: half of a ping-pong, the median of all
};

// What a message costs: alpha, however short it is, and beta for each byte.
struct CostModel {
    double alpha_s = 0;
    double beta_s_per_byte = 0;

    double seconds(std::size_t bytes) const {
        return alpha_s + beta_s_per_byte * static_cast<double>(bytes);
    }
};

// Ranks 0 and 1 send `bytes` back and forth, `rounds` times after a few to warm up; the other ranks
// have nothing to do. All ranks of `peers` may call it; rank 0 learns the time.
MessageTime ping_pong(Peers& peers, std::size_t bytes, int rounds);

// The shortest third of the sizes tells alpha, and the longest third beta: medians, so that one
// measurement that was disturbed does not spoil the line. `times` go from short to long. Throws
// std::invalid_argument with fewer than three sizes.
CostModel fit_cost(std::span<const MessageTime> times);

}  // namespace ddp
