#pragma once
// An MLP on one rank, and split over two: how long a step takes, and which rank computes when.
#include "05_ranks/rank.hpp"

namespace ddp {

// Trains on random numbers: `rounds` steps of each schedule, in turns, after one to warm up. All
// ranks call it; ranks 0 and 1, which must share a node, compute, and rank 0 prints. With --csv the
// timelines are written to a file beside that one, with the ending _timeline. Throws
// std::runtime_error if the split network has another loss.
void show_model_parallelism(Rank& rank, const CommonOptions& common, int rounds);

}  // namespace ddp
