#pragma once
// Every call of a communicator, with data that tells whose it is and where it belongs, in sums that
// are not exact: their bits show the order in which they were made.
#include <string>
#include <vector>

#include "09_all_reduce/communicator.hpp"

namespace ddp::test {

// One operation with elements of one type, of all counts.
struct CallResult {
    std::string call;       // "all_reduce average float32"
    std::size_t wrong = 0;  // elements on this rank that are not what the documents say
    std::string bits;       // a hash of all results on this rank
};

// All calls, in place and out of place, with every type and each of `counts`; and with `large`
// floats. All ranks call this together. A reduce adds in one order on one host and in another
// between hosts, so its data is such that all orders give the same.
std::vector<CallResult> make_all_calls(Communicator& communicator,
                                       const std::vector<std::size_t>& counts, std::size_t large);

// The arena that takes.
std::size_t arena_bytes_for(int ranks, const std::vector<std::size_t>& counts, std::size_t large);

}  // namespace ddp::test
