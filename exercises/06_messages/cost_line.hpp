#pragma once
// The contract of the exercise cost_line: from measured times to alpha and beta, and from these to
// the size at which a message is worth its latency.
#include <cstddef>
#include <span>

#include "06_messages/point_to_point.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Task line. Returns the alpha and beta for which the line alpha + bytes * beta is nearest to the
// measured times: the sum of the squares of its relative errors is smallest. The relative error of
// a time is (alpha + bytes * beta) / seconds - 1. `times` have two or more different sizes.
CostModel nearest_line(std::span<const MessageTime> times);

// Task share. Returns the smallest number of bytes for which bytes / seconds reaches `share` of the
// bandwidth 1 / beta. `share` is at least 0, and less than 1; alpha and beta are more than 0.
std::size_t bytes_for_share(const CostModel& message, double share);

}  // namespace ddp
