#pragma once
// Every call of a communicator of `kind`, with whole numbers that tell rank and index and are small
// enough for all sums to be exact in every type, in whatever order they are made. The result is how
// many elements are not what they should be, on this rank. All ranks call these together.
#include <string>

#include "09_all_reduce/communicator.hpp"

namespace ddp::test {

// All calls with elements of every type; those that sum by every ReduceOp, those that have a root
// with every root; in place and out of place; with 0 to 10,007 elements (if `quick`, one more than
// there are ranks), and some of them with 1,200,011.
int wrong_of_all_calls(Rank& rank, const std::string& kind, bool quick);

// A collective waits for the kernel that writes its input, and a kernel behind it for the
// collective; the host for neither.
int wrong_of_order(Rank& rank, const std::string& kind);

// Two communicators, which half of the ranks call in another order: they have nothing to do with
// each other.
int wrong_of_two(Rank& rank, const std::string& kind);

}  // namespace ddp::test
