#pragma once
// A step's timeline, for people.
#include <filesystem>
#include <vector>

#include "06_messages/support/timeline.hpp"

namespace ddp {

// What a stream of computation does while there is nothing to compute with.
inline constexpr const char* waiting_for_gradients = "waiting for gradients";

// A step with overlap (unless it was switched off), and one without. The latter may be empty.
struct TwoSteps {
    std::vector<StreamSpan> usual, without_overlap;
};

// How long they were, and how much of the communication ran beside computation, for each rank.
void show_timeline(const TwoSteps& steps);

// As a table overlap,rank,stream,name,begin_ms,end_ms, beside the run's own: out/overlap.csv gives
// out/overlap_timeline.csv. Each step begins at 0. With an empty path none.
void write_timeline(const std::filesystem::path& csv, const TwoSteps& steps);

}  // namespace ddp
