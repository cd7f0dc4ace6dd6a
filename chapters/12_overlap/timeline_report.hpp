#pragma once
// A step's timeline, for people.
#include <filesystem>
#include <vector>

#include "12_overlap/timeline.hpp"

namespace ddp {

// How much of the communication ran beside computation, for each rank.
void show_timeline(const std::vector<Interval>& intervals);

// As a table rank,stream,name,begin_ms,end_ms, beside the run's own: out/overlap.csv gives
// out/overlap_timeline.csv. With an empty path none.
void write_timeline(const std::filesystem::path& csv, const std::vector<Interval>& intervals);

}  // namespace ddp
