#pragma once
// The contract of the exercise roll_call: every rank says where it can be reached, and all get the
// list; or all learn which rank is the reason why there is none.
#include <stdexcept>
#include <string>
#include <vector>

#include "exercises/not_implemented.hpp"

namespace ddp {

// Says why there is no list: "rank 3 is gone". `rank()` is the first cause, the rank without which
// the others could have met, and `why()` the rest of the sentence.
class RollFailed : public std::runtime_error {
  public:
    RollFailed(int rank, const std::string& why)
        : std::runtime_error("rank " + std::to_string(rank) + " " + why), rank_(rank), why_(why) {}
    int rank() const { return rank_; }
    const std::string& why() const { return why_; }

  private:
    int rank_;
    std::string why_;
};

// Returns the addresses of all ranks, by rank. Every rank calls it once, in a thread of its own.
//
//     rank 0 brings "node0:29500", rank 1 "node1:29501": both get {"node0:29500", "node1:29501"}
//
// On rank 0 connections[r] is a socket that leads to rank r; on every other rank connections[0]
// leads to rank 0. All other entries are -1, and all are closed when all ranks have ended. An
// address has no '\n' in it.
//
// Task list: all ranks come.
// Task gone: one ends its connection while rank 0 still waits for any. Every rank that is left
// throws RollFailed at once, with that rank as the cause.
//
// You may call: send(), read(), poll().
// The check also tries: one rank, any order of arrival, bytes that come one by one.
std::vector<std::string> take_roll(int rank, int world_size, const std::string& address,
                                   const std::vector<int>& connections);

}  // namespace ddp
