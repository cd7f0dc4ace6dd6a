#pragma once
// A step's timeline, for people.
#include <filesystem>
#include <vector>

#include "04_ranks/timeline.hpp"

namespace ddp {

// What a stream of computation does while there is nothing to compute with.
inline constexpr const char* waiting_for_gradients = "waiting for gradients";

// How much of the communication ran beside computation, for each rank.
void show_timeline(const std::vector<Interval>& intervals);

// As a table rank,stream,name,begin_ms,end_ms, beside the run's own: out/overlap.csv gives
// out/overlap_timeline.csv. With an empty path none.
void write_timeline(const std::filesystem::path& csv, const std::vector<Interval>& intervals);

}  // namespace ddp
