#pragma once
// When a pipeline's stages work, and when they wait.
#include <filesystem>
#include <vector>

#include "05_ranks/rank.hpp"

namespace ddp {

// Runs GPipe and 1F1B, each with each number of micro-batches, with a stage on each rank, whose
// layers sleep in place of computing: many stages can sleep at once on a few cores. Rank 0 prints
// what each is idle, and who works when; the spans go to `csv`. All ranks call it together.
void show_schedules(Rank& rank, const std::vector<int>& micro_batches,
                    const std::filesystem::path& csv);

}  // namespace ddp
