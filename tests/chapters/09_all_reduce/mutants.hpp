#pragma once
// All-reduces with the mistakes that people make. The check that the tests use must notice each.
#include <vector>

#include "tests/chapters/support/collective_check.cuh"

namespace ddp::test {

struct Mutant {
    std::string mistake;
    AllReduce<float> run;
    int least_ranks = 2;  // with fewer it is right
};

// For up to `most` elements; takes four times as many of the arena.
std::vector<Mutant> all_mutants(Peers& peers, std::size_t most);

// Every element is right, but each rank adds in an order of its own, itself first.
AllReduce<float> own_order_all_reduce(Peers& peers, std::size_t most);

}  // namespace ddp::test
