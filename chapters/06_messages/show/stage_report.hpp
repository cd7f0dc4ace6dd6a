#pragma once
// A network on one rank and split over two, and one that may be too large for one.
#include "03_network/layers/sequential.hpp"
#include "05_ranks/rank.hpp"

namespace ddp {

// Returns layers first to last - 1 of a network of `all` layers, which are `width` wide. A layer's
// initial values depend on its number only, not on the rank that has it.
std::unique_ptr<Sequential> make_layers(Device& device, int first, int last, int all, int width);

// Trains on random numbers: `rounds` steps of each schedule, in turns, after one to warm up. All
// ranks call it; ranks 0 and 1, which must share a node, compute, and rank 0 prints. With --csv the
// timelines are written to a file beside that one, with the ending _timeline. Throws
// std::runtime_error if the split network has another loss.
void show_model_parallelism(Rank& rank, const CommonOptions& common, int rounds);

// Takes one step of a network of 64 MiB on rank 0 alone, and one on ranks 0 and 1, and prints what
// each rank has held, or that its device had no room. All ranks call it; ranks 0 and 1 must share a
// node.
void show_large_network(Rank& rank);

}  // namespace ddp
