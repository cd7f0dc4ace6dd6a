#pragma once
// The contract of the exercise roll_call: every rank says where it can be reached, and all get the
// list; or all learn which rank is the reason why there is none.
#include <chrono>
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

// Takes the roll. Each rank calls this function once, in a process or thread of its own, with what
// its launcher has told it: its number, the number of ranks (1 or more), its own address, and its
// connections. An address is a text of 1 to 100 characters in one line; it may have any character
// but '\n', blanks as well. Returns the addresses of all ranks, by rank.
//
// `connections` are descriptors of sockets, which the launcher made before it started any rank and
// will close when all have ended. On rank 0 connections[r] leads to rank r; on every other rank
// connections[0] leads to rank 0. All other entries are -1. A read() waits until at least one byte
// has come, and returns what is there: perhaps only the beginning of what the other end has sent.
// It returns 0 when the other end is gone and nothing more will come. What is sent here is so short
// that a send() never waits.
//
// Task list. All ranks come, in any order.
//
// Task gone. If the connection to a rank ends while rank 0 still waits for any rank, or if a rank
// was told another number of ranks than rank 0, then every rank that is left throws RollFailed with
// that rank as the cause. It does so at once: no rank waits for one that has yet to come. If rank 0
// is gone before a rank has the whole list, rank 0 is the cause.
//
// Task late. Rank 0 waits until `limit` has passed since its call began, and then throws RollFailed
// with the lowest rank that has not come. The others learn the same cause from it. They themselves
// give rank 0 up, as the cause, when they have waited for 2 * limit.
std::vector<std::string> take_roll(int rank, int world_size, const std::string& address,
                                   const std::vector<int>& connections,
                                   std::chrono::milliseconds limit);

}  // namespace ddp
