#pragma once
// A network that may be too large for one rank, and half of it on each of two.
#include "05_ranks/rank.hpp"

namespace ddp {

// Takes one step of a network of 64 MiB on rank 0 alone, and one on ranks 0 and 1, and prints what
// each rank has held, or that its device had no room. All ranks call it; ranks 0 and 1 must share a
// node.
void show_large_network(Rank& rank);

}  // namespace ddp
