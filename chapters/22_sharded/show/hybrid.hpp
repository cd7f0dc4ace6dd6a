#pragma once
// One training, replicated on all ranks and sharded within each node.
#include <filesystem>

#include "22_sharded/support/stages.hpp"

namespace ddp {

// Prints what a rank of both keeps and receives, and their hashes. The nodes are those of the job,
// or of `order`, which is that of DDP's sums. Throws std::runtime_error if the two end in different
// bits although DDP sums on two levels, and OptionError if the nodes are not of the same size. All
// ranks call it together.
void show_hybrid(Rank& rank, const LabelledImages& images, StagePlan plan,
                 const AllReduceOrder& order, const std::filesystem::path& csv);

}  // namespace ddp
