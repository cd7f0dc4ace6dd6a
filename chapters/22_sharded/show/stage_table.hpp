#pragma once
// The memory budget of each stage, and one training at several stages: as tables and files.
#include <filesystem>

#include "22_sharded/support/stages.hpp"

namespace ddp {

// Prints the bytes that a step of this model needs on each of so many ranks, with the plan's
// optimizer and options. Writes them for 1, 2, 4 and 8 ranks to `csv`.
void show_budget(StageModel& model, const StagePlan& plan, int own_ranks,
                 const std::filesystem::path& csv);

// Trains at each of the stages, and prints on rank 0 what a rank keeps and receives, and the
// hashes. Throws std::runtime_error if these must be the same and are not. All ranks call it
// together.
void show_stages(Rank& rank, const LabelledImages& images, StagePlan plan,
                 const std::vector<int>& stages, const std::filesystem::path& csv);

}  // namespace ddp
