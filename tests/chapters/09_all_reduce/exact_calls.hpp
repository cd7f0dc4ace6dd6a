#pragma once
// Every call of a communicator of a given kind, with the elements of collective_values.hpp, whose
// sums are exact in any order. Each function returns how many elements are wrong on this rank. All
// ranks call the same functions in the same order.
#include <string>

#include "09_all_reduce/communicator.hpp"

namespace ddp::test {

// Makes all calls with `count` elements of T: those that reduce with every ReduceOp, those that
// have a root with every root, in place and out of place. T is float, double, __half,
// __nv_bfloat16, int or unsigned char (which is not reduced).
template <class T>
int wrong_of_type(Communicator& communicator, Stream& stream, std::size_t count);

// Makes all calls with elements of every type, with every ReduceOp and every root, in place and out
// of place, of 0 to 10,007 elements (if `quick`, of one more than there are ranks).
int wrong_of_all_calls(Rank& rank, const std::string& kind, bool quick);

// Makes some of the calls with arrays that are cut into several slices, of which the last is short.
int wrong_of_large_calls(Rank& rank, const std::string& kind);

// Checks that a collective waits for the kernel that writes its input, that a kernel enqueued after
// the collective waits for it, and that the host waits for neither.
int wrong_of_order(Rank& rank, const std::string& kind);

// Calls two communicators, in one order on half of the ranks and in the other order on the rest:
// the two must not wait for each other. (One is over a group of all ranks in another order.)
int wrong_of_two(Rank& rank, const std::string& kind);

}  // namespace ddp::test
