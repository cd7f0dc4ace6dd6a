#pragma once
// Predictions for broadcasts, from the cost of a message: seconds until the last of `ranks` ranks
// has all `bytes`, where a rank sends to one other at a time and receives from one.
#include <cstddef>

#include "06_messages/point_to_point.hpp"

namespace ddp {

// Returns (N - 1) (alpha + bytes beta): one message follows the other.
double linear_seconds(const CostModel& message, int ranks, std::size_t bytes);

// Returns alpha + (N - 1) bytes beta: the root's port is as busy, but while one rank waits out its
// latency the others get their slices. If the ranks are too few to keep the port busy, or the
// slices too small, each rank needs slices (alpha + bytes / slices beta) by itself.
double all_at_once_seconds(const CostModel& message, int ranks, std::size_t bytes, int slices);

// Returns the time of log2(N), rounded up, messages, one after the other.
double tree_seconds(const CostModel& message, int ranks, std::size_t bytes);

// Returns (N - 2 + slices) (alpha + bytes / slices beta): the first slice passes N - 1 ranks, and
// then one of the others arrives in each step.
double chain_seconds(const CostModel& message, int ranks, std::size_t bytes, int slices);

// Returns the number of slices, at most `max_slices`, with which a chain is fastest:
// sqrt((N - 2) bytes beta / alpha). With fewer, the last rank waits longer for its first slice;
// with more, alpha is paid more often.
int best_slices(const CostModel& message, int ranks, std::size_t bytes, int max_slices);

}  // namespace ddp
