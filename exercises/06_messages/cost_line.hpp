#pragma once
// The contract of the exercise cost_line: from measured times to alpha and beta, and from these to
// a size of message that is worth sending.
#include <cstddef>
#include <span>

#include "06_messages/point_to_point.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Task line. The alpha and beta for which the line alpha + bytes * beta is nearest to what was
// measured: the sum of the squares of its relative errors, (alpha + bytes * beta) / seconds - 1, is
// least. `times` have two different sizes or more, in any order, and no time is 0.
CostModel nearest_line(std::span<const MessageTime> times);

// Task share. How many bytes must a message have, at least, so that bytes / seconds reaches `share`
// of the bandwidth, which is 1 / beta? `share` is from 0 up to, not including, 1.
std::size_t bytes_for_share(const CostModel& message, double share);

}  // namespace ddp
