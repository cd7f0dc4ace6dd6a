#pragma once
// The outcomes of small programs, by trying each possible next step of each state: slow, and too
// simple to be wrong.
#include <set>
#include <vector>

#include "tests/common/explorer/programs.hpp"

namespace ddp::test {

// All that the programs have loaded, one after the other.
using Outcome = std::vector<unsigned int>;

struct PossibleOutcomes {
    std::set<Outcome> outcomes;
    bool has_deadlock = false;
};
// `first`: what the places have at first.
using FirstValues = std::array<unsigned int, max_places>;
PossibleOutcomes outcomes_by_model(const std::vector<SmallProgram>& programs,
                                   const FirstValues& first = {});

}  // namespace ddp::test
