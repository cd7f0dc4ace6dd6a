#pragma once
// Who holds what while a tree reduces: a row for each step, a column for each rank.
#include "05_ranks/rank.hpp"

namespace ddp {

// A table of more ranks would not fit a page.
constexpr int max_ranks_of_partial_sums = 8;

// Reduces one number of each rank to rank 0, reads back what each rank has summed on the way, and
// prints it on rank 0. All ranks call it together: two or more, at most max_ranks_of_partial_sums.
// Throws std::runtime_error if a rank has summed other ranks than the table says.
void show_partial_sums(Rank& rank);

}  // namespace ddp
