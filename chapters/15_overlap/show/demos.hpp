#pragma once
// The chapter's demos, which the program runs after its training.
#include "05_ranks/world.hpp"
#include "15_overlap/show/compression_report.hpp"

namespace ddp {

// Shows what bucket hooks save and lose, what no_sync is for, and why buckets have an order.
void show_demos(World& world, const LabelledImages& images, const CommonOptions& common);

}  // namespace ddp
