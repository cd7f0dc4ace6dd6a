#pragma once
// One training at several stages, as a table and a file.
#include <filesystem>

#include "22_sharded/show/stages.hpp"

namespace ddp {

// Trains at each of the stages, and prints on rank 0 what a rank keeps and receives, and the
// hashes. Throws std::runtime_error if these must be the same and are not. All ranks call it
// together.
void show_stages(Rank& rank, const LabelledImages& images, StagePlan plan,
                 const std::vector<int>& stages, const std::filesystem::path& csv);

}  // namespace ddp
