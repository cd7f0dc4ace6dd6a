#pragma once
// When a step at stage 3 computes, gathers and reduces: with prefetch, and without.
#include "22_sharded/support/stages.hpp"
#include "common/report/options.hpp"

namespace ddp {

// Makes some steps of the plan with prefetch and some without, of many samples, over a simulated
// link that takes as long for a step's bytes as the ranks compute; a run over a link keeps its own.
// Draws rank 0's step of median length of each kind, and writes those of all ranks beside
// `common.csv` (out/sharded.csv gives out/sharded_timeline.csv). Says why there is nothing to draw
// with one rank, or on several nodes. All ranks call it together.
void show_timeline(Rank& rank, const LabelledImages& images, StagePlan plan,
                   const CommonOptions& common);

}  // namespace ddp
