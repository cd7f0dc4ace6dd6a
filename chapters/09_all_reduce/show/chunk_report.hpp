#pragma once
// Who holds what while the ring goes round, as a table: a row for each step, a column for each
// rank.
#include <cstddef>

#include "05_ranks/rank.hpp"

namespace ddp {

// A table of more ranks would not fit a page.
constexpr int most_ranks_in_a_picture = 8;

// Lets the ring that the host drives (host_ring.hpp) sum an array in which rank r has 2^r, looks
// after every step at what each rank has, and prints it on rank 0. All ranks call this together;
// two or more, and no more than most_ranks_in_a_picture.
void show_chunks(Rank& rank);

}  // namespace ddp
