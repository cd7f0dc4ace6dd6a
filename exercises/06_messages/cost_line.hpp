#pragma once
// Exercise cost_line: alpha and beta from measured times, and from these the size at which a
// message is worth its latency.
//
//     100 bytes take 3 us, 300 bytes take 5 us: alpha is 2 us, and beta 10 ns per byte.
//     Then 200 bytes reach half of the bandwidth: 2 us of latency, 2 us of bytes.
//
// You may call: message.seconds(bytes), which is alpha_s + bytes * beta_s_per_byte; what <cmath>
// has.
// The check also tries: times that are on no line; an answer that is not a whole number of bytes.
#include <cstddef>
#include <span>

#include "06_messages/point_to_point.hpp"
#include "exercises/not_implemented.hpp"

namespace ddp {

// Task line. Returns the line alpha + bytes * beta for which the squares of the relative errors,
// (alpha + bytes * beta) / seconds - 1, have the smallest sum. Two sizes or more are different.
CostModel nearest_line(std::span<const MessageTime> times);

// Task share. Returns the smallest number of bytes for which bytes / seconds reaches `share`, more
// than 0 and less than 1, of the bandwidth 1 / beta.
std::size_t bytes_for_share(const CostModel& message, double share);

}  // namespace ddp
