#pragma once
// All-reduces with typical mistakes. The check that the tests use must notice each of them.
#include <vector>

#include "tests/chapters/support/collective_check.cuh"

namespace ddp::test {

struct Mutant {
    std::string mistake;
    AllReduce<float> run;
    int least_ranks = 2;  // with fewer the result is right
};

// Returns all mutants, for up to `most` elements. They need world size + 1 arrays of `most` floats
// in the arena.
std::vector<Mutant> all_mutants(Peers& peers, std::size_t most);

// Returns an all-reduce whose elements are right up to rounding, but each rank adds in an order of
// its own, beginning with itself.
AllReduce<float> own_order_all_reduce(Peers& peers, std::size_t most);

}  // namespace ddp::test
