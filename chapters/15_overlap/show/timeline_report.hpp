#pragma once
// The timelines of two steps, as a table and as a file.
#include <filesystem>
#include <string>
#include <vector>

#include "15_overlap/support/step_watch.hpp"

namespace ddp {

// Prints for each rank how long its steps took, and backward, communication and the exposed part of
// it within them; `note` stands below the table. Writes the same to a table beside `csv`
// (out/overlap.csv gives out/overlap_steps.csv), unless it is empty.
void show_timeline(const TwoSteps& steps, const std::filesystem::path& csv,
                   const std::string& note = "");

// Writes a table overlap,rank,stream,name,begin_ms,end_ms beside the run's own: with `name`
// "timeline", out/overlap.csv gives out/overlap_timeline.csv. Each step begins at 0. Writes none if
// `csv` is empty.
void write_timeline(const std::filesystem::path& csv, const TwoSteps& steps,
                    const std::string& name = "timeline");

// Prints the two steps of the training, writes them beside `common.csv`, and writes the usual one
// to `trace`.
void show_watched_steps(const TwoSteps& steps, const CommonOptions& common, Trace& trace);

}  // namespace ddp
