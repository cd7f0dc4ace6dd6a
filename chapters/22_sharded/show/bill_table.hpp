#pragma once
// The bill of each stage, for 1 to 8 ranks, as a table and a file.
#include <filesystem>

#include "22_sharded/show/stages.hpp"

namespace ddp {

// Prints what a step of this model takes with the plan's optimizer and options, and writes it to
// `csv`.
void show_bill(StageModel& model, const StagePlan& plan, const std::filesystem::path& csv);

}  // namespace ddp
