#pragma once
// Exercise bracketing: who adds what in the chapter's reduce, and which bits come of it. No rank
// runs.
//
//     5 ranks, root 0       at the end rank 0 has ((x0+x1)+(x2+x3))+x4, and rank 2 has x2+x3
//
// The check also tries: one rank, up to nine; every root; arrays without elements.
#include <string>
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// Task held. Returns the sum that rank `rank` has made when it is done, written as above: brackets
// around each sum that is added to another, none around the whole, and no blanks.
std::string held_by(int rank, int ranks, int root);

// Task bits. Returns the sum of the arrays of all ranks, element by element, with the bits of the
// chapter's reduce. The arrays have the same length.
std::vector<float> tree_sum(const std::vector<std::vector<float>>& arrays);

}  // namespace ddp
