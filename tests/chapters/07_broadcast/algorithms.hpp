#pragma once
// The four broadcasts under one signature.
#include <string>
#include <vector>

#include "07_broadcast/broadcast.hpp"

namespace ddp::test {

struct Algorithm {
    std::string operation;  // as the records call it
    void (*broadcast)(Peers& peers, const Call& call, Stream& stream);
};

// Linear, all at once, by tree, by chain with three slices.
const std::vector<Algorithm>& all_algorithms();

}  // namespace ddp::test
