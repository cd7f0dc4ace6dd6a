#pragma once
// Exercise roll_call: every rank says where it can be reached, and all get the list.
//
//     rank 0 brings "node0:29500", rank 1 "node1:29501": both get {"node0:29500", "node1:29501"}
//
// You may call: send(), read(), poll().
// The check also tries: one rank, any order of arrival, bytes that come one by one.
#include <stdexcept>
#include <string>
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// Says which rank is the reason why there is no list.
struct RollFailed : std::runtime_error {
    explicit RollFailed(int cause)
        : std::runtime_error("rank " + std::to_string(cause) + " is gone"), rank(cause) {}
    int rank;
};

// Returns the addresses of all ranks, by rank. Each rank calls it in a thread of its own. On rank 0
// connections[r] is a socket that leads to rank r; on all others connections[0] leads to rank 0.
// An address has no '\n' in it.
//
// Task list: all ranks come.
// Task gone: one ends its connection while rank 0 still waits for any. All that are left throw
// RollFailed at once, with that rank as the cause.
std::vector<std::string> take_roll(int rank, int world_size, const std::string& address,
                                   const std::vector<int>& connections);

}  // namespace ddp
