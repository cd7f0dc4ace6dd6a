#pragma once
// An MLP on one rank, and split over two: how long a step takes, and who is idle when.
#include "05_ranks/rank.hpp"

namespace ddp {

// Trains on numbers of no meaning, `rounds` steps each way after one to warm up, in turns. All
// ranks call it; ranks 0 and 1, which share a host, compute, and rank 0 prints. With --csv the
// timelines are written beside that file, with the ending _timeline. Throws std::runtime_error if
// the split network has another loss.
void show_model_parallelism(Rank& rank, const CommonOptions& common, int rounds);

}  // namespace ddp
