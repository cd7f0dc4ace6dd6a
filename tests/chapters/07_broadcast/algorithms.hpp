#pragma once
// The four broadcasts under one signature.
#include <string>
#include <vector>

#include "07_broadcast/broadcast.hpp"

namespace ddp::test {

struct Algorithm {
    std::string operation;  // its name in records and messages
    void (*broadcast)(Peers& peers, const Call& call, Stream& stream);
};

// Returns linear, all at once, tree, and chain with three slices.
const std::vector<Algorithm>& all_algorithms();

}  // namespace ddp::test
