#pragma once
// The four broadcasts under one signature, and worlds to run them in.
#include <string>
#include <vector>

#include "04_ranks/world.hpp"
#include "05_broadcast/broadcast.hpp"

namespace ddp::test {

struct Way {
    std::string operation;  // as the records call it
    void (*broadcast)(Peers& peers, const AnyArray& array, int root, Stream& stream,
                      const std::string& name);
};

// Linear, all at once, by tree, by chain with three slices.
const std::vector<Way>& all_ways();

CommonOptions thread_options(int ranks, double timeout_s = 30);

// The first cause of the run's failure, or "".
std::string failure_of(World& world, const std::function<void(Rank&)>& work);

bool has(const std::string& text, const std::string& part);

}  // namespace ddp::test
