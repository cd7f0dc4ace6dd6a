#pragma once
// The contract of the exercise bracketing: who adds what in a reduce, and which bits the sum has.
// No rank runs: everything is on the host.
#include <string>
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// Task held. Returns the sum that rank `rank` has made when its part of the chapter's tree reduce
// is done, in a job of `ranks` ranks and for any root. It is written as tree_order() writes it:
// "x2" for a rank that adds nothing to its own, "(x0+x1)+x2" for the root of three ranks. There are
// brackets around each sum that is added to another, none around the whole, and no blanks.
std::string held_by(int rank, int ranks, int root);

// Task bits. Returns the sum over the ranks, element by element: element i is the sum of
// arrays[r][i] over all r, where arrays[r] is what rank r has. The bits are those of the chapter's
// reduce. All arrays have the same length, which may be 0.
std::vector<float> tree_sum(const std::vector<std::vector<float>>& arrays);

// Task tell_apart. Another library numbers the ranks anew before it reduces: the root becomes 0,
// root + 1 becomes 1, and so on, counted round. Then it adds in the chapter's order of the new
// numbers. Returns a number for each rank, so that its sum and the chapter's have different bits;
// or an empty vector, if they have the same bits whatever the numbers are. Numbers and sums are
// finite.
std::vector<float> numbers_that_tell(int ranks, int root);

}  // namespace ddp
