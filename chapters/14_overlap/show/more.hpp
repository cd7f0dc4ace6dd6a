#pragma once
// What the chapter shows beside its training.
#include "05_ranks/world.hpp"
#include "14_overlap/show/compression_report.hpp"

namespace ddp {

// What a bucket hook may do, what no_sync is for, and why buckets have an order.
void show_more(World& world, const LabelledImages& images, const CommonOptions& common);

}  // namespace ddp
