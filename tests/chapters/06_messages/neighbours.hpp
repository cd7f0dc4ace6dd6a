#pragma once
// Every rank sends to its right neighbour and receives from its left one; what arrives is checked.
#include "06_messages/peers.hpp"

namespace ddp::test {

// Returns how many elements were wrong on this rank, over counts 0, 1, primes, large, and data that
// is not aligned. Each element encodes its rank, its round and its index. World size 2 or more.
int count_wrong_at_neighbours(Rank& rank);

}  // namespace ddp::test
