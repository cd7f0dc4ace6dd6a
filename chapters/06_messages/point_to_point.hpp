#pragma once
// How long does a message take? A ping-pong between two ranks measures it, and a straight line
// through the times describes it: seconds = alpha + bytes * beta.
#include <cstddef>
#include <span>
#include <vector>

#include "06_messages/peers.hpp"

namespace ddp {

// The measurement of one size.
struct MessageTime {
    std::size_t bytes = 0;
    double seconds = 0;  // from one rank to the other: half of a ping-pong, the median of all
};

// The cost of a message: alpha for every message, and beta for every byte.
struct CostModel {
    double alpha_s = 0;
    double beta_s_per_byte = 0;

    double seconds(std::size_t bytes) const {
        return alpha_s + beta_s_per_byte * static_cast<double>(bytes);
    }
};

// Sends `bytes` back and forth between ranks 0 and 1, in batches until `rounds` are timed, and
// returns the time of one message. All ranks of `peers` call it; the others only wait until both
// are ready, and return a time of 0.
MessageTime ping_pong(Peers& peers, std::size_t bytes, int rounds);

// Fits the line: alpha to the shortest third of the sizes, beta to the longest third, each as a
// median, so that one disturbed measurement does not spoil the line. `times` are sorted by size,
// shortest first. Throws std::invalid_argument if there are fewer than three.
CostModel fit_cost(std::span<const MessageTime> times);

}  // namespace ddp
